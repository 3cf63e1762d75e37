"""The key file on disk."""

import threading
from pathlib import Path

import pytest
from descriptors import no_descriptors
from playhead.gateway import access_file
from playhead.gateway.access_file import Unread, Watched, edit, load, others_may_write
from playhead.gateway.access_keys import KeyFileError, KeyRing, new_key

NOW = 1_800_000_000.0


def test_what_is_put_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "keys.json"
    key = new_key("a client", NOW)[1]
    with edit(path) as put:
        put(KeyRing([key]))
    assert load(path).keys == (key,)
    assert path.stat().st_mode & 0o777 == 0o600
    assert not others_may_write(path)
    path.chmod(0o622)
    assert others_may_write(path)
    assert {found.name for found in path.parent.iterdir()} == {"keys.json", "keys.json.lock"}


def test_granted_modes_stay(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with edit(path) as put:
        put(KeyRing())
    path.chmod(0o640)
    with edit(path) as put:
        put(KeyRing())
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("content", "says"), [(None, "No such file"), (b"\xff", "not UTF-8"), (b"{}", '"version": 1')]
)
def test_a_bad_file_is_named(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "keys.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(KeyFileError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert says in str(caught.value)


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_file, "MAX_BYTES", 10)
    (tmp_path / "keys.json").write_bytes(b" " * 11)
    with pytest.raises(KeyFileError, match="more than 10 bytes"):
        load(tmp_path / "keys.json")


def test_writers_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"

    def add(name: str) -> None:
        with edit(path) as put:
            ring = load(path) if path.exists() else KeyRing()
            put(KeyRing((*ring.keys, new_key(name, NOW)[1])))

    threads = [threading.Thread(target=add, args=(f"client {n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(load(path)) == 8


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys.json"
    with edit(path) as put:
        put(KeyRing())

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(access_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space"), edit(path) as put:
        put(KeyRing([new_key("lost", NOW)[1]]))
    assert len(load(path)) == 0
    assert {found.name for found in tmp_path.iterdir()} == {"keys.json", "keys.json.lock"}


def test_every_change_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    watched = Watched(path)
    assert not watched.changed()
    with edit(path) as put:
        put(KeyRing())
    assert watched.changed()
    assert not watched.changed()
    with edit(path) as put:
        put(KeyRing())  # the same bytes, another file
    assert watched.changed()
    path.unlink()
    assert watched.changed()


def test_nobody_may_write_a_file_that_has_gone(tmp_path: Path) -> None:
    assert not others_may_write(tmp_path / "keys.json")


def test_without_descriptors_nothing_is_known_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    with edit(path) as put:
        put(KeyRing())
    watched = Watched(path)
    with no_descriptors(), pytest.raises(Unread, match="Too many open files"):
        load(path)
    assert not watched.changed()
    watched.forget()
    assert watched.changed()
    assert not watched.changed()
