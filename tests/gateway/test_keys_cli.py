"""`playhead keys`."""

import json
from pathlib import Path

import pytest
from playhead.gateway.access_file import load
from playhead.gateway.access_quota import Quota
from playhead.gateway.cli import main


def run(path: Path, *arguments: str) -> int:
    return main(["keys", *arguments], {"PLAYHEAD_KEYS": str(path)})


def test_add_list_revoke(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "keys.json"
    limits = ("--connections", "3", "--streams", "2", "--characters-per-minute", "500")
    assert run(path, "add", "--name", "shop", "--days", "30", *limits) == 0
    told = capsys.readouterr()
    text = told.out.strip()
    (key,) = load(path).keys
    assert load(path).recognise(text, key.created) == key
    assert (key.name, key.quota) == ("shop", Quota(3, 2, 500))
    assert key.expires is not None
    assert key.expires - key.created == pytest.approx(30 * 86_400, abs=1)
    assert key.id in told.err
    assert text not in told.err

    assert run(path, "add", "--name", "metrics", "--role", "metrics") == 0
    capsys.readouterr()
    assert run(path, "revoke", text) == 0
    assert run(path, "revoke", key.id) == 0
    assert capsys.readouterr().out.count(f"key {key.id} (shop) is revoked") == 2
    assert load(path).recognise(text, key.created) is None

    assert run(path, "list") == 0
    shown = capsys.readouterr().out
    assert [line.split()[1] for line in shown.splitlines()[1:]] == ["revoked", "usable"]
    assert "never" in shown
    assert text not in shown
    assert key.digest.hex() not in shown


def test_an_expired_key_is_shown_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "keys.json"
    run(path, "add", "--name", "old", "--days", "1")
    document = json.loads(path.read_text())
    document["keys"][0]["expires"] = "2020-01-01T00:00:00Z"
    path.write_text(json.dumps(document))
    capsys.readouterr()
    assert run(path, "list") == 0
    assert "expired" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["list"], 1, "No such file"),
        (["revoke", "abcdefgh"], 1, "No such file"),
        (["add", "--name", "a\nb"], 1, "control characters"),
    ],
)
def test_what_cannot_be_done(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    says: str,
) -> None:
    assert run(tmp_path / "keys.json", *arguments) == status
    assert says in capsys.readouterr().err


def test_a_key_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "keys.json"
    run(path, "add", "--name", "x")
    assert run(path, "revoke", "abcdefgh") == 1
    assert "no key with that id" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(tmp_path / "file" / "keys.json", "add", "--name", "x") == 1
    assert "keys.json" in capsys.readouterr().err


def test_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "list"], {}) == 2
    assert "--keys or PLAYHEAD_KEYS" in capsys.readouterr().err


@pytest.mark.parametrize("days", ["0", "-1", "x"])
def test_days_are_whole(days: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["keys", "add", "--name", "x", "--days", days], {})
    assert caught.value.code == 2
    assert "--days" in capsys.readouterr().err
