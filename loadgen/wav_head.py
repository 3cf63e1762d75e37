"""The head of a WAV stream (RIFF, Microsoft 1991); its lengths mean nothing while it goes on.
Pure."""

import struct
from dataclasses import dataclass

_MOST_HEAD = 4_096
_PCM = 1
_EXTENSIBLE = 0xFFFE


class NoWav(ValueError):
    """The bytes are no WAV stream of 16-bit mono PCM; the message says what they are."""


@dataclass(slots=True)
class WavHead:
    """Feed it bytes; it gives the samples behind the head. ``rate`` is 0 until the head has come,
    in samples a second."""

    rate: int = 0
    _pending: bytes = b""
    _over: bool = False

    def feed(self, data: bytes) -> bytes:
        """The part of the PCM that is in ``data``. Raises :class:`NoWav`."""
        if self._over:
            return data
        self._pending += data
        if len(self._pending) < 12:
            return b""
        if self._pending[:4] != b"RIFF" or self._pending[8:12] != b"WAVE":
            raise NoWav(f"{self._pending[:12]!r} does not begin a WAV stream")
        return self._chunks()

    def _chunks(self) -> bytes:
        at = 12
        while len(self._pending) >= at + 8:
            name, size = struct.unpack_from("<4sI", self._pending, at)
            body = at + 8
            if name == b"data":
                return self._begin(body)
            if len(self._pending) < body + size:
                break
            if name == b"fmt ":
                self._format(self._pending[body : body + size])
            at = body + size + size % 2
        if len(self._pending) > _MOST_HEAD:
            raise NoWav("its head does not end")
        return b""

    def _begin(self, body: int) -> bytes:
        if not self.rate:
            raise NoWav("its data comes before its format")
        pcm, self._pending, self._over = self._pending[body:], b"", True
        return pcm

    def _format(self, body: bytes) -> None:
        if len(body) < 16:
            raise NoWav(f"its format has {len(body)} bytes; expected 16 or more")
        kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
        if kind not in (_PCM, _EXTENSIBLE) or (channels, bits) != (1, 16) or not rate:
            raise NoWav(
                f"format {kind}, {channels} channels of {bits} bits at {rate} Hz; "
                "expected 16-bit mono PCM"
            )
        self.rate = rate
