"""What gateways read of an engine that loads in another process."""

from pathlib import Path

from playhead.engine.progress import Stage
from playhead.gateway.loading_note import WAITING, LoadingNote, note_of, read_note


def test_what_is_written_is_read(tmp_path: Path) -> None:
    socket = str(tmp_path / "engine")
    assert read_note(socket) == WAITING
    note = LoadingNote(socket)
    note("reading the weights", 0.5)
    assert read_note(socket) == Stage("reading the weights", 0.5)
    note("capturing graphs", 0.0)
    assert read_note(socket) == Stage("capturing graphs", 0.0)
    assert [path.name for path in tmp_path.iterdir()] == ["engine.loading"]
    note.remove()
    assert read_note(socket) == WAITING
    note.remove()


def test_nonsense_and_missing_folders_are_no_fault(tmp_path: Path) -> None:
    socket = str(tmp_path / "engine")
    for text in ("", "[]", "{}", '{"stage": 1, "done": "x"}', "7"):
        note_of(socket).write_text(text)
        assert read_note(socket) == WAITING
    LoadingNote(str(tmp_path / "gone" / "engine"))("reading the weights", 0.5)
