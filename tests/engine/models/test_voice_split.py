import json
from pathlib import Path

import pytest
from playhead.engine.models.hibari import split
from playhead.engine.models.hibari.split import VoiceError, cache_root, ensure_voice


def test_files_are_made_once_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ensure_voice(tmp_path)
    made = files.decoder.stat().st_mtime_ns
    assert ensure_voice(tmp_path) == files
    assert files.decoder.stat().st_mtime_ns == made
    assert [path.name for path in tmp_path.iterdir()] == [files.backbone.parent.name]
    monkeypatch.setenv("PLAYHEAD_CACHE", str(tmp_path))
    split.main()
    assert capsys.readouterr().out == f"voice ready: {files.backbone.parent} (19.7 MB)\n"


@pytest.mark.parametrize("damage", ["truncate", "remove", "manifest"])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, damage: str) -> None:
    files = ensure_voice(tmp_path)
    whole = files.decoder.read_bytes()
    if damage == "truncate":
        files.decoder.write_bytes(whole[:1000])
    elif damage == "remove":
        files.backbone.unlink()
    else:
        (files.backbone.parent / "sha256.json").write_text("{")
    assert ensure_voice(tmp_path) == files
    assert files.decoder.read_bytes() == whole


def test_another_process_may_have_been_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ensure_voice(tmp_path)
    made = files.decoder.stat().st_mtime_ns
    sound = iter([False, True])
    monkeypatch.setattr(split, "_is_sound", lambda folder: next(sound))
    ensure_voice(tmp_path)
    assert files.decoder.stat().st_mtime_ns == made


def test_another_version_of_the_voice_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "hibari.onnx"
    source.write_bytes(b"something else")
    monkeypatch.setattr(split, "source_path", lambda: source)
    with pytest.raises(VoiceError, match=r"expected 5f70741d.*hibari-tts 0\.2\.1"):
        ensure_voice(tmp_path / "cache")


def test_a_missing_voice_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "hibari", None)
    with pytest.raises(VoiceError, match=r"pip install hibari-tts==0\.2\.1"):
        split.source_path()


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"PLAYHEAD_CACHE": "/a"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/playhead")),
        ({}, Path.home() / ".cache" / "playhead"),
    ],
)
def test_where_the_cache_lies(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], expected: Path
) -> None:
    for name in ("PLAYHEAD_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert cache_root() == expected


def test_the_hashes_are_recorded(tmp_path: Path) -> None:
    folder = ensure_voice(tmp_path).backbone.parent
    recorded = json.loads((folder / "sha256.json").read_text())
    assert set(recorded) == {"backbone.onnx", "decoder.onnx"}
