"""A target of another kind: ``POST /v1/audio/speech`` with a streamed PCM answer, the shape that
OpenAI's speech API gave to many servers. One request is one session; nothing is reported back.

Its stream has no marks, so what one read gives is taken for one chunk, as published benchmarks of
such servers do; there are no stamps either, so a stall cannot be told from the network.
"""

import asyncio
import json
from dataclasses import replace
from urllib.parse import urlsplit

from playhead.engine.clock import monotonic
from playhead.engine.types import Lane
from playhead.gateway.messages import Audio, Cancel, Cancelled, Done, Failed, Started
from playhead.loadgen.habits import Caller, Reports
from playhead.loadgen.http_body import BadResponse, Response
from playhead.loadgen.plan import Plan
from playhead.loadgen.reporting import Link
from playhead.loadgen.session import GRACE, OPEN_TIMEOUT, SessionError
from playhead.loadgen.turn import Turn

PATH = "/v1/audio/speech"
_READ = 65_536
_EPOCH = 1


class SpeechRequest:
    """A connection that is open and waits for its one request."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        plan: Plan,
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
        self._link = Link()
        self._response = Response()
        self._odd = b""  # half a sample
        self._samples = 0

    @property
    def link(self) -> Link:
        """See :class:`~playhead.loadgen.session.Session`."""
        return self._link

    async def speak(self, turn: Turn, deadline: float) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        self.turns += 1
        try:
            async with asyncio.timeout(deadline + GRACE - monotonic()):
                await self._speak(turn)
        except TimeoutError:
            turn.lost("the socket took nothing more", monotonic(), "timeout")
        except ConnectionError as error:
            turn.lost(error.strerror or "the connection dropped", monotonic())
        except BadResponse as error:
            turn.lost(str(error), monotonic(), "protocol")

    async def close(self) -> None:
        """See :class:`~playhead.loadgen.session.Session`."""
        self._writer.transport.abort()

    async def _speak(self, turn: Turn) -> None:
        turn.start(monotonic())
        self._writer.write(request(self._plan, turn.record.text))
        await self._writer.drain()
        turn.sent(monotonic())
        turn.receive(Started(seq=1, epoch=_EPOCH), 0, monotonic())
        while not turn.over:
            try:
                async with asyncio.timeout(max(0.0, turn.due() - monotonic())):
                    data = await self._read()
            except TimeoutError:
                self._tick(turn, monotonic())
            else:
                self._take(turn, data, monotonic())
            if self._response.over and turn.played and not turn.over:
                turn.receive(_done(self._samples), 0, monotonic())

    async def _read(self) -> bytes:
        if self._response.over:
            await asyncio.Event().wait()  # nothing more comes; only the listener plays on
        return await self._reader.read(_READ)

    def _tick(self, turn: Turn, now: float) -> None:
        cut = any(isinstance(message, Cancel) for message in turn.tick(now))
        if cut and not turn.over:
            # Hanging up is how such servers are interrupted.
            self._writer.transport.abort()
            turn.receive(_cancelled(), 0, now)

    def _take(self, turn: Turn, data: bytes, now: float) -> None:
        response = self._response
        body = response.feed(data) if data else b""
        if response.status not in (0, 200):
            turn.receive(_failed(response.status), 0, now)
            return
        if not data and not response.end():
            turn.lost("the answer broke off", now)
            return
        body = self._odd + body
        whole = len(body) // 2 * 2
        self._odd = body[whole:]
        if whole or response.over:
            turn.receive(self._audio(body[:whole], response.over, now), len(data), now)

    def _audio(self, pcm: bytes, final: bool, now: float) -> Audio:
        samples = len(pcm) // 2
        position, self._samples = self._samples, self._samples + samples
        return Audio(
            seq=1,
            epoch=_EPOCH,
            index=0,
            position=position,
            samples=samples,
            words=(),
            lane=Lane.BACKGROUND,
            slack=None,
            depth=0.0,
            sent=1_000 * now,
            final=final,
            data=pcm,
        )


async def open_speech(url: str, plan: Plan, caller: Caller, number: int) -> SpeechRequest:
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
    return SpeechRequest(reader, writer, plan, caller, number)


def request(plan: Plan, text: str) -> bytes:
    """The whole HTTP request."""
    parts = urlsplit(plan.url)
    fields = {
        "model": plan.model or "tts-1",
        "input": text,
        "voice": plan.voice or "default",
        "response_format": "pcm",
        "stream": True,
    }
    body = json.dumps(fields).encode()
    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def _done(samples: int) -> Done:
    return Done(
        seq=1, epoch=_EPOCH, samples=samples, heard=samples, estimated=True, reason="complete"
    )


def _cancelled() -> Cancelled:
    return Cancelled(seq=1, epoch=_EPOCH, heard=0, heard_text="", unheard_text="", estimated=True)


def _failed(status: int) -> Failed:
    code = "overloaded" if status in (429, 503) else f"http_{status}"
    return Failed(
        seq=1,
        epoch=_EPOCH,
        code=code,
        message=f"HTTP status {status}",
        expected="200",
        heard=0,
        heard_text="",
        unheard_text="",
    )
