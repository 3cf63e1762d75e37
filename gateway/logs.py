"""Log lines that tell which session and utterance they are about, and that cost nobody its audio.

Whoever logs only puts a record into a bounded queue; one thread writes. When the reader of the
stream stalls, lines are dropped and counted. A message that repeats is let through a few times a
second and then summed up. What looks like a secret is blotted out, whoever wrote it.
"""

import contextlib
import copy
import json
import logging
import threading
from datetime import UTC, datetime
from logging.handlers import QueueHandler
from queue import Full, Queue
from typing import Final, TextIO

from playhead.gateway.redact import redact

TEXT: Final = "text"
JSON: Final = "json"
FIELDS: Final = ("session", "utterance", "epoch", "node", "suppressed")
"""What a record may carry in ``extra`` and every line shows."""
QUEUED: Final = 10_000
BURST: Final = 20
"""Lines of one kind that may come at once; then :data:`RATE` a second."""
RATE: Final = 5.0
KINDS: Final = 1_000
PATIENCE: Final = 1.0
"""Seconds that the end of the process waits for the last lines to be written."""

_EXCEPTIONS: Final = logging.Formatter()


class RateLimit(logging.Filter):
    """Lets each kind of line (its logger, level and template) through at a bounded rate.

    The next line that passes says in ``suppressed`` how many did not. Critical ones always pass.
    """

    def __init__(self, rate: float = RATE, burst: int = BURST) -> None:
        super().__init__()
        self._rate = rate
        self._burst = float(burst)
        self._kinds: dict[tuple[str, int, str], tuple[float, float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether ``record`` passes; its own time stamp is the clock."""
        if record.levelno >= logging.CRITICAL:
            return True
        key = (record.name, record.levelno, str(record.msg))
        if key not in self._kinds and len(self._kinds) >= KINDS:
            self._kinds.clear()
        left, since, dropped = self._kinds.get(key, (self._burst, record.created, 0))
        left = min(self._burst, left + max(0.0, record.created - since) * self._rate)
        if left < 1.0:
            self._kinds[key] = (left, record.created, dropped + 1)
            return False
        self._kinds[key] = (left - 1.0, record.created, 0)
        if dropped:
            record.suppressed = dropped
        return True


class Shedding(QueueHandler):
    """Hands records to a thread that gives them to ``writer``. Never waits: what does not fit into
    the queue is counted in ``dropped``."""

    def __init__(self, writer: logging.Handler, size: int = QUEUED) -> None:
        self.queue: Queue[logging.LogRecord | None] = Queue(size)
        super().__init__(self.queue)
        self.dropped = 0
        self.addFilter(RateLimit())
        self._writer = writer
        self._thread = threading.Thread(target=self._write, name="playhead-log", daemon=True)
        self._thread.start()

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Fix the message and the traceback now: their arguments may change."""
        record = copy.copy(record)  # other handlers may want its parts
        if record.exc_info and not record.exc_text:
            record.exc_text = _EXCEPTIONS.formatException(record.exc_info)
        record.msg, record.args, record.exc_info = record.getMessage(), None, None
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        """Queue ``record``, or count it."""
        try:
            self.queue.put_nowait(record)
        except Full:
            self.dropped += 1

    def close(self) -> None:
        """Write what is queued, for a bounded time. The logging module does it at exit."""
        if self._thread.is_alive():
            with contextlib.suppress(Full):
                self.queue.put_nowait(None)
            self._thread.join(PATIENCE)
        super().close()

    def _write(self) -> None:
        while (record := self.queue.get()) is not None:
            self._writer.handle(record)


class TextFormatter(logging.Formatter):
    """``2026-11-29 16:20:00,123 WARNING playhead.session: … session=… utterance=…``"""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback adds its own."""
        return redact(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The first line, with the fields that the record has."""
        extras = "".join(f" {name}={value}" for name, value in _fields(record).items())
        return super().formatMessage(record) + extras


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (RFC 3339, UTC), level, logger, message, fields, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        when = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_text:
            line["exception"] = record.exc_text
        for name, value in line.items():
            line[name] = redact(value) if isinstance(value, str) else value
        return json.dumps(line, ensure_ascii=False)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    given = vars(record)
    return {name: given[name] for name in FIELDS if name in given}


def open_log(stream: TextIO, level: str, form: str) -> Shedding:
    """Make ``stream`` the process's log. ``form``: :data:`TEXT` or :data:`JSON`."""
    writer = logging.StreamHandler(stream)
    writer.setFormatter(JsonFormatter() if form == JSON else TextFormatter())
    handler = Shedding(writer)
    logging.getLogger().setLevel(level.upper())
    logging.getLogger().addHandler(handler)
    # Lines of the libraries' own about each connection say nothing that ours do not.
    for library in ("websockets", "uvicorn"):
        logging.getLogger(library).setLevel(logging.WARNING)
    logging.raiseExceptions = False  # a full disk must not become a traceback per line
    return handler


def dropped() -> int:
    """Lines of the process's log that nobody was there to take."""
    handlers = logging.getLogger().handlers
    return sum(handler.dropped for handler in handlers if isinstance(handler, Shedding))
