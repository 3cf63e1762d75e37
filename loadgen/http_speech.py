"""Targets that answer one HTTP POST with streamed speech: 16-bit PCM, bare or behind a WAV head.

One request is one session; nothing is reported back. The stream has no marks, so what one read
gives is taken for one chunk, as published benchmarks of such servers do; there are no stamps
either, so a stall cannot be told from the network.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from playhead.engine.clock import monotonic
from playhead.gateway.messages import Cancel, ClientMessage, Failed, Text
from playhead.loadgen.dial import ELSEWHERE
from playhead.loadgen.drive import Drive
from playhead.loadgen.foreign import Utterance
from playhead.loadgen.habits import Caller, Reports
from playhead.loadgen.http_body import BadResponse, Response
from playhead.loadgen.keys import REFUSED, key_headers
from playhead.loadgen.line import Line, connect, told
from playhead.loadgen.plan import Plan
from playhead.loadgen.reporting import Link
from playhead.loadgen.session import OPEN_TIMEOUT, SessionError, in_time
from playhead.loadgen.turn import Turn
from playhead.loadgen.wav_head import NoWav, WavHead

_NO_AUDIO = ("text/", "application/json")
_FULL = frozenset({429, 503})
_ABSENT = frozenset({404, 405})
_RATE_HEADER = "x-sample-rate"  # of servers whose PCM is bare


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server wants to be asked. ``body`` gives the content type and the body for a text;
    ``wav``: its PCM comes behind a WAV head."""

    body: Callable[[Plan, str], tuple[str, bytes]]
    wav: bool


class WrongFormat(ValueError):
    """The audio is not at the rate that was asked for; the message says both."""


class SpeechRequest:
    """A connection that waits for its one request; receives what its line brings."""

    def __init__(self, plan: Plan, dialect: Dialect, caller: Caller, number: int) -> None:
        self.caller = replace(caller, reports=Reports.OFF)
        self.number = number
        self.turns = 0
        self.offset: float | None = None
        self.round_trip: float | None = None
        self._line: Line | None = None
        self._turn: Turn | None = None
        self._drive: Drive | None = None
        self._gone: str | None = None  # why, once the connection is
        self._plan = plan
        self._dialect = dialect
        self._link = Link()
        self._response = Response()
        self._head = WavHead() if dialect.wav else None
        self._utterance = Utterance()

    @property
    def stamped(self) -> bool:
        """See :class:`~playhead.loadgen.session.Session`."""
        return self._line is not None and self._line.stamped

    @property
    def link(self) -> Link:
        """See :class:`~playhead.loadgen.session.Session`."""
        return self._link

    async def dial(self, host: str, port: int, secure: bool) -> None:
        """Raises ``OSError``."""
        self._line = await connect(host, port, secure, self)

    async def speak(self, turn: Turn, deadline: float) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        assert self._line is not None, "the session was opened"
        self.turns += 1
        self._turn = turn
        self._drive = Drive(turn, self._send, self._line.poll)
        async with in_time(turn, deadline):
            self._drive.start()
            turn.take(self._utterance.started(), 0, monotonic())
            if self._gone is not None:
                self.closed(self._gone)
            await self._drive.ended()

    async def close(self) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        if self._line is not None:
            self._line.abort()

    def received(self, data: bytes, at: float) -> None:
        """See :class:`~playhead.loadgen.line.Receiver`."""
        turn = self._turn
        if turn is None or self._response.over:
            return
        try:
            self._take(turn, data, at)
        except (BadResponse, NoWav) as error:
            turn.lost(str(error), at, "protocol")
        except WrongFormat as error:
            turn.lost(str(error), at, "wrong_format")

    def settled(self, now: float) -> None:
        """See :class:`~playhead.loadgen.line.Receiver`."""
        if self._drive is None or self._turn is None:
            return
        self._drive.settled(now)
        if self._response.over and self._turn.played and not self._turn.over:
            self._turn.take(self._utterance.done(), 0, now)
            self._drive.look()

    def closed(self, reason: str) -> None:
        """See :class:`~playhead.loadgen.line.Receiver`."""
        self._gone = reason
        if self._turn is None or self._drive is None:
            return
        now = monotonic()
        if reason and not self._response.over:
            self._turn.lost(reason, now)
        self.received(b"", now)
        self.settled(now)

    def _send(self, messages: Sequence[ClientMessage]) -> None:
        """The text is asked for in one request; hanging up is how such servers are interrupted."""
        assert self._line is not None
        for said in messages:
            if isinstance(said, Text):
                self._line.write(request(self._plan, self._dialect, said.text))
            elif isinstance(said, Cancel):
                self._hang_up()

    def _hang_up(self) -> None:
        assert self._line is not None
        assert self._turn is not None
        self._line.abort()
        self._turn.take(self._utterance.cancelled(), 0, monotonic())

    def _take(self, turn: Turn, data: bytes, at: float) -> None:
        response = self._response
        body = response.feed(data) if data else b""
        if response.status not in (0, 200):
            turn.take(self._refused(response.status), 0, at)
            return
        if not data and not response.end():
            turn.lost("the answer broke off", at)
            return
        audio = self._utterance.audio(self._pcm(body), response.over, at)
        if audio is not None:
            turn.take(audio, len(data), at)

    def _refused(self, status: int) -> Failed:
        code, hint = f"http_{status}", ""
        if status in REFUSED:
            code, hint = "refused_key", ": give a key with --key-from"
        elif status in _FULL:
            code = "overloaded"
        elif status in _ABSENT:
            hint = f": {ELSEWHERE}"
        return self._utterance.failed(code, f"HTTP status {status}{hint}", "200")

    def _pcm(self, body: bytes) -> bytes:
        """The samples of a piece of the body. Raises what :meth:`speak` names."""
        headers = self._response.headers
        kind = headers.get("content-type", "")
        if kind.startswith(_NO_AUDIO):
            raise BadResponse(f"it answers with {kind}, not with audio")
        rate = headers.get(_RATE_HEADER, "")
        if self._head is not None:
            body = self._head.feed(body)
            rate = str(self._head.rate or "")
        if rate and rate != str(self._plan.sample_rate):
            raise WrongFormat(f"expected {self._plan.sample_rate} Hz, got {rate} Hz")
        return body


async def open_request(
    url: str, plan: Plan, dialect: Dialect, caller: Caller, number: int
) -> SpeechRequest:
    """Connect only. Raises :class:`SessionError`."""
    session = SpeechRequest(plan, dialect, caller, number)
    await connected(url, session)
    return session


async def connected(url: str, session: SpeechRequest) -> None:
    """Dial ``url``. Raises :class:`SessionError`."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    try:
        async with asyncio.timeout(OPEN_TIMEOUT):
            await session.dial(str(parts.hostname), parts.port or (443 if secure else 80), secure)
    except TimeoutError:
        raise SessionError("no_answer", f"{url} gave no answer") from None
    except OSError as error:
        raise SessionError("unreachable", f"cannot connect to {url}: {told(error)}") from None


def request(plan: Plan, dialect: Dialect, text: str) -> bytes:
    """The whole HTTP request, the only one of its connection."""
    return message(plan, "POST", "", dialect.body(plan, text), "Connection: close")


def message(
    plan: Plan, method: str, below: str, content: tuple[str, bytes] | None, *more: str
) -> bytes:
    """An HTTP request to a path ``below`` the plan's. ``content``: its type and the body;
    ``more``: header lines."""
    parts = urlsplit(plan.url)
    lines = [f"{method} {parts.path}{below} HTTP/1.1", f"Host: {parts.netloc}"]
    body = b""
    if content is not None:
        kind, body = content
        lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in key_headers(plan).items()]
    return "\r\n".join([*lines, *more, "", ""]).encode() + body
