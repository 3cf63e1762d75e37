"""What servers of other kinds say, told in our own messages, so that one :class:`Turn` judges all.

They have no marks, stamps or lanes: what came at once is one chunk, stamped when it came. Pure.
"""

from playhead.engine.types import Lane
from playhead.gateway.messages import Audio, Cancelled, Done, Failed, Started

EPOCH = 1
_SAMPLE = 2  # bytes: 16-bit PCM, mono


class Utterance:
    """The one utterance of a connection."""

    def __init__(self) -> None:
        self.samples = 0
        self._odd = b""  # half a sample

    def started(self) -> Started:
        """The server has taken the text, or a first part of it."""
        return Started(seq=1, epoch=EPOCH)

    def audio(self, data: bytes, final: bool, now: float) -> Audio | None:
        """Bytes of PCM that came at ``now``; ``None`` when they complete no sample."""
        data = self._odd + data
        whole = len(data) // _SAMPLE * _SAMPLE
        pcm, self._odd = data[:whole], data[whole:]
        if not pcm and not final:
            return None
        position, self.samples = self.samples, self.samples + len(pcm) // _SAMPLE
        return Audio(
            seq=1,
            epoch=EPOCH,
            index=0,
            position=position,
            samples=len(pcm) // _SAMPLE,
            words=(),
            lane=Lane.BACKGROUND,
            slack=None,
            depth=0.0,
            sent=1_000 * now,
            final=final,
            data=pcm,
        )

    def done(self, reason: str = "complete") -> Done:
        """The listener has heard all; nobody told the server."""
        return Done(
            seq=1,
            epoch=EPOCH,
            samples=self.samples,
            heard=self.samples,
            estimated=True,
            reason=reason,
        )

    def cancelled(self) -> Cancelled:
        """The listener cut in."""
        return Cancelled(
            seq=1, epoch=EPOCH, heard=0, heard_text="", unheard_text="", estimated=False
        )

    def failed(self, code: str, message: str, expected: str) -> Failed:
        """The server will not speak (on)."""
        return Failed(
            seq=1,
            epoch=EPOCH,
            code=code,
            message=message,
            expected=expected,
            heard=0,
            heard_text="",
            unheard_text="",
        )
