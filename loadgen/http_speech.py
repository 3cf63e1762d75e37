"""Targets that answer one HTTP POST with streamed speech: 16-bit PCM, bare or behind a WAV head.

One request is one session; nothing is reported back. The stream has no marks, so what one read
gives is taken for one chunk, as published benchmarks of such servers do; there are no stamps
either, so a stall cannot be told from the network.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from playhead.engine.clock import monotonic
from playhead.gateway.messages import Cancel, Failed
from playhead.loadgen.foreign import Utterance
from playhead.loadgen.habits import Caller, Reports
from playhead.loadgen.http_body import BadResponse, Response
from playhead.loadgen.keys import REFUSED, key_headers
from playhead.loadgen.plan import Plan
from playhead.loadgen.reporting import Link
from playhead.loadgen.session import OPEN_TIMEOUT, SessionError, in_time
from playhead.loadgen.turn import Turn
from playhead.loadgen.wav_head import NoWav, WavHead

_READ = 65_536
_NO_AUDIO = ("text/", "application/json")
_FULL = frozenset({429, 503})
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
    """A connection that is open and waits for its one request."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        plan: Plan,
        dialect: Dialect,
        caller: Caller,
        number: int,
    ) -> None:
        self.caller = replace(caller, reports=Reports.OFF)
        self.number = number
        self.turns = 0
        self.offset: float | None = None
        self.round_trip: float | None = None
        self._reader = reader
        self._writer = writer
        self._plan = plan
        self._dialect = dialect
        self._link = Link()
        self._response = Response()
        self._head = WavHead() if dialect.wav else None
        self._utterance = Utterance()

    @property
    def link(self) -> Link:
        """See :class:`~playhead.loadgen.session.Session`."""
        return self._link

    async def speak(self, turn: Turn, deadline: float) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        self.turns += 1
        try:
            async with in_time(turn, deadline):
                await self._speak(turn)
        except ConnectionError as error:
            turn.lost(error.strerror or "the connection dropped", monotonic())
        except (BadResponse, NoWav) as error:
            turn.lost(str(error), monotonic(), "protocol")
        except WrongFormat as error:
            turn.lost(str(error), monotonic(), "wrong_format")

    async def close(self) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        self._writer.transport.abort()

    async def _speak(self, turn: Turn) -> None:
        turn.start(monotonic())
        self._writer.write(request(self._plan, self._dialect, turn.record.text))
        await self._writer.drain()
        turn.sent(monotonic())
        turn.receive(self._utterance.started(), 0, monotonic())
        while not turn.over:
            try:
                async with asyncio.timeout(max(0.0, turn.due() - monotonic())):
                    data = await self._read()
            except TimeoutError:
                self._tick(turn, monotonic())
            else:
                self._take(turn, data, monotonic())
            if self._response.over and turn.played and not turn.over:
                turn.receive(self._utterance.done(), 0, monotonic())

    async def _read(self) -> bytes:
        if self._response.over:
            await asyncio.Event().wait()  # nothing more comes; only the listener plays on
        return await self._reader.read(_READ)

    def _tick(self, turn: Turn, now: float) -> None:
        cut = any(isinstance(message, Cancel) for message in turn.tick(now))
        if cut and not turn.over:
            # Hanging up is how such servers are interrupted.
            self._writer.transport.abort()
            turn.receive(self._utterance.cancelled(), 0, now)

    def _take(self, turn: Turn, data: bytes, now: float) -> None:
        response = self._response
        body = response.feed(data) if data else b""
        if response.status not in (0, 200):
            turn.receive(self._refused(response.status), 0, now)
            return
        if not data and not response.end():
            turn.lost("the answer broke off", now)
            return
        audio = self._utterance.audio(self._pcm(body), response.over, now)
        if audio is not None:
            turn.receive(audio, len(data), now)

    def _refused(self, status: int) -> Failed:
        code = f"http_{status}"
        if status in REFUSED:
            code = "refused_key"
        elif status in _FULL:
            code = "overloaded"
        return self._utterance.failed(code, f"HTTP status {status}", "200")

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
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    try:
        async with asyncio.timeout(OPEN_TIMEOUT):
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port or (443 if secure else 80), ssl=secure or None
            )
    except TimeoutError:
        raise SessionError("no_answer", f"{url} gave no answer") from None
    except OSError as error:
        raise SessionError("unreachable", f"cannot connect to {url}: {error.strerror}") from None
    return SpeechRequest(reader, writer, plan, dialect, caller, number)


def request(plan: Plan, dialect: Dialect, text: str) -> bytes:
    """The whole HTTP request."""
    parts = urlsplit(plan.url)
    kind, body = dialect.body(plan, text)
    lines = [
        f"POST {parts.path} HTTP/1.1",
        f"Host: {parts.netloc}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in key_headers(plan).items()),
        "Connection: close",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
