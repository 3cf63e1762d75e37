"""Text of any length and pace, cut into utterances that a server takes."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable

from playhead.client.utterance import Utterance
from playhead.client.voice import Voice

_READ = 4096
#: Characters after which a stream of text goes on in a new utterance: some minutes of speech,
#: far below what a server keeps of one utterance.
PART = 8000


async def feed(
    voice: Voice,
    source: AsyncIterator[str],
    sent: Callable[[], None],
    *,
    flush_lines: bool = False,
) -> AsyncIterator[Utterance]:
    """Send text as it comes; yields each utterance as it is opened.

    ``sent`` is called after every piece. ``flush_lines``: what ends in a line feed is spoken at
    once. The source is read on while the caller listens.
    """
    feeder = _Feeder(voice, sent, flush_lines)
    sender = asyncio.create_task(feeder.run(source))
    try:
        while (utterance := await feeder.opened.get()) is not None:
            yield utterance
        await sender
    finally:
        sender.cancel()
        await asyncio.gather(sender, return_exceptions=True)


class _Feeder:
    def __init__(self, voice: Voice, sent: Callable[[], None], flush_lines: bool) -> None:
        self.opened: asyncio.Queue[Utterance | None] = asyncio.Queue()
        self._voice = voice
        self._sent = sent
        self._flush_lines = flush_lines
        self._utterance: Utterance | None = None

    async def run(self, source: AsyncIterator[str]) -> None:
        try:
            async for delta in source:
                self._take(delta)
        finally:
            self._end()
            self.opened.put_nowait(None)

    def _take(self, delta: str) -> None:
        while delta:
            utterance = self._utterance or self._open()
            size = cut(delta, PART - len(utterance.text))
            utterance.send(delta[:size])
            self._sent()
            if self._flush_lines and delta.endswith("\n"):
                utterance.flush()
            delta = delta[size:]
            if delta or len(utterance.text) >= PART:
                self._end()

    def _open(self) -> Utterance:
        self._utterance = utterance = self._voice.open()
        self.opened.put_nowait(utterance)
        return utterance

    def _end(self) -> None:
        if self._utterance is not None:
            self._utterance.end()
            self._utterance = None


def cut(text: str, room: int) -> int:
    """How much of ``text`` fits into ``room`` characters: whole words, if there are any."""
    if len(text) <= room:
        return len(text)
    space = max(text.rfind(" ", 0, room), text.rfind("\n", 0, room))
    return space + 1 or room


async def standard_input() -> AsyncIterator[str]:
    """Standard input as it arrives, decoded; bytes that are no UTF-8 become U+FFFD.

    Read by a daemon thread: nothing else can wait for a terminal, a pipe and a file alike and
    yet be left behind when the program is interrupted.
    """
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes] = asyncio.Queue()
    number = sys.stdin.fileno()

    def read() -> None:
        data = b"-"
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody listens any more
            while data:
                data = os.read(number, _READ)
                loop.call_soon_threadsafe(pieces.put_nowait, data)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    rest = b""
    while data := await pieces.get():
        text, rest = decode(rest + data)
        if text:
            yield text
    if rest:
        yield rest.decode(errors="replace")


def decode(data: bytes) -> tuple[str, bytes]:
    """UTF-8 as far as it goes, and the bytes of a character that is not complete yet."""
    try:
        return data.decode(), b""
    except UnicodeDecodeError as error:
        end = error.start if error.reason == "unexpected end of data" else len(data)
        return data[:end].decode(errors="replace"), data[end:]
