"""The file of settings."""

from pathlib import Path

import pytest
from playhead.gateway import config_file, settings


def read(folder: Path, text: str | bytes) -> dict[str, str]:
    file = folder / "playhead.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return config_file.read(str(file), ("port", "host", "origins", "allow_remote", "grace"))


def test_values_become_what_a_flag_would_give(tmp_path: Path) -> None:
    text = 'port = 9000\nallow-remote = true\ngrace = 2.5\norigins = ["https://a.b", "https://c.d"]'
    assert read(tmp_path, text) == {
        "port": "9000",
        "allow_remote": "true",
        "grace": "2.5",
        "origins": "https://a.b,https://c.d",
    }
    assert read(tmp_path, "allow_remote = false") == {"allow_remote": "false"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("prot = 1", "there is no setting 'prot'; did you mean port?"),
        ("zzz = 1", "there is no setting 'zzz'; see `playhead serve --help`"),
        ("port = ", "is not TOML: Invalid value"),
        (b"\xff", "is not TOML"),
        ("port = {a = 1}", "port must be a text, a number, true, false or a list"),
        ("origins = [1]", "origins must be a text"),
    ],
)
def test_what_cannot_be_used_says_so(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(config_file.ConfigError) as caught:
        read(tmp_path, text)
    assert says in str(caught.value)
    assert "--config" in str(caught.value)
    assert "playhead.toml" in str(caught.value)


def test_a_missing_file() -> None:
    with pytest.raises(config_file.ConfigError, match=r"/none cannot be read: No such file"):
        config_file.read("/none", ())


def parse(arguments: list[str], environ: dict[str, str]) -> settings.Settings:
    import argparse

    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    return settings.from_args(parser.parse_args(arguments), environ)


def test_flags_win_over_variables_and_both_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text('port = 1\ngrace = 5\nlog-format = "json"\n')
    found = parse(["--config", str(file), "--port", "3"], {"PLAYHEAD_PORT": "2"})
    assert (found.port, found.grace, found.log_format) == (3, 5.0, "json")
    found = parse([], {"PLAYHEAD_CONFIG": str(file), "PLAYHEAD_PORT": "2"})
    assert (found.port, found.grace) == (2, 5.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("port = 70000", "--config: port='70000' is not usable: expected a whole number"),
        ("nothing = 1", "there is no setting 'nothing'"),
        ('node = "Ä"', "expected up to 64 small letters, digits and hyphens"),
        ("trace_ratio = 2", "expected a number from 0 to 1"),
        ('trace_ratio = "much"', "expected a number from 0 to 1"),
    ],
)
def test_bad_values_in_the_file_name_it(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "p.toml"
    file.write_text(text)
    with pytest.raises(settings.SettingsError) as caught:
        parse(["--config", str(file)], {})
    assert says in str(caught.value)


def test_good_names_and_ratios(tmp_path: Path) -> None:
    found = parse(["--node", "gpu-3"], {"PLAYHEAD_TRACE_RATIO": "0.25"})
    assert (found.node, found.trace_ratio) == ("gpu-3", 0.25)
