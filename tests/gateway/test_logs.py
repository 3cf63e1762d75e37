"""Log lines: fields, secrets, floods, and readers that have stopped reading."""

import io
import json
import logging
import threading
from collections.abc import Iterator

import pytest
from machine import PATIENCE
from playhead.gateway import logs


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, put back afterwards."""
    root = logging.getLogger()
    before, level, root.handlers = root.handlers, root.level, []
    yield root
    for handler in root.handlers:
        handler.close()
    root.handlers = before
    root.setLevel(level)


def lines(form: str, *args: object, **extra: object) -> list[str]:
    """What one warning becomes."""
    stream = io.StringIO()
    handler = logs.open_log(stream, "info", form)
    logging.getLogger("playhead.x").warning(*args, extra=extra)
    handler.close()
    return stream.getvalue().splitlines()


def test_text_lines_carry_their_fields(root: logging.Logger) -> None:
    (line,) = lines(logs.TEXT, "dry for %d ms", 40, session="s1", utterance=7)
    assert line.endswith("WARNING playhead.x: dry for 40 ms session=s1 utterance=7")


def test_json_lines_are_objects(root: logging.Logger) -> None:
    (line,) = lines(logs.JSON, "dry for %d ms", 40, session="s1", epoch=3)
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "warning",
        "logger": "playhead.x",
        "message": "dry for 40 ms",
        "session": "s1",
        "epoch": 3,
    }


@pytest.mark.parametrize("form", [logs.TEXT, logs.JSON])
def test_tracebacks_are_kept_without_secrets(root: logging.Logger, form: str) -> None:
    stream = io.StringIO()
    handler = logs.open_log(stream, "info", form)
    try:
        int("token=abc123")
    except ValueError:
        logging.getLogger("playhead.x").exception("it broke")
    handler.close()
    written = stream.getvalue()
    assert "Traceback" in written
    assert "token=***" in written
    assert "abc123" not in written


@pytest.mark.parametrize("form", [logs.TEXT, logs.JSON])
def test_secrets_are_blotted_out_of_messages_and_fields(root: logging.Logger, form: str) -> None:
    """What counts as one: test_redact.py."""
    key = "ph_abcdefgh_" + "hush" * 10
    (line,) = lines(form, "asked for %s with %s", "?apiKey=hush&voice=ada", key, session=key)
    assert "hush" not in line
    assert "?apiKey=***&voice=ada" in line


def record(at: float, message: str = "m", level: int = logging.INFO) -> logging.LogRecord:
    made = logging.LogRecord("playhead.x", level, "", 0, message, None, None)
    made.created = at
    return made


def test_a_flood_of_one_kind_is_thinned_and_summed_up() -> None:
    limit = logs.RateLimit(rate=2.0, burst=3)
    assert [limit.filter(record(10.0)) for _ in range(5)] == [True, True, True, False, False]
    assert limit.filter(record(10.0, "another kind"))
    later = record(10.6)
    assert limit.filter(later)
    assert vars(later)["suppressed"] == 2
    assert not limit.filter(record(10.6))
    assert all(limit.filter(record(10.6, level=logging.CRITICAL)) for _ in range(9))


def test_kinds_are_bounded() -> None:
    limit = logs.RateLimit(rate=1.0, burst=1)
    for number in range(3 * logs.KINDS):
        assert limit.filter(record(1.0, f"made up {number}"))
    assert len(limit._kinds) <= logs.KINDS


class Stuck(io.StringIO):
    """A pipe that nobody reads for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()

    def write(self, text: str) -> int:
        self.goes_on.wait(PATIENCE)
        return len(text)


def test_a_reader_that_stalls_costs_lines_and_no_time(
    root: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PATIENCE", 0.01)
    stream = Stuck()
    writer = logging.StreamHandler(stream)
    handler = logs.Shedding(writer, size=5)
    root.addHandler(handler)
    for number in range(19):
        root.error("line %d", number)
    assert handler.dropped >= 19 - 5 - 1
    assert logs.dropped() == handler.dropped
    handler.close()
    handler.close()
    stream.goes_on.set()


def test_a_record_keeps_the_message_it_was_logged_with(root: logging.Logger) -> None:
    stream = io.StringIO()
    handler = logs.open_log(stream, "info", logs.TEXT)
    changing = ["before"]
    logging.getLogger("playhead.x").error("%s", changing)
    changing[0] = "after"
    handler.close()
    assert "before" in stream.getvalue()
