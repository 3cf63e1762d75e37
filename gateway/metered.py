"""A wire encoder whose processor time is counted."""

from collections.abc import Callable

from playhead.codecs.base import Encoded, Encoder, Pcm
from prometheus_client import Counter


class MeteredEncoder:
    """Encodes through ``encoder`` and counts, wherever it runs: seconds of processor time by
    ``timer`` into ``cpu``, seconds of audio at ``rate`` Hz into ``audio``."""

    def __init__(
        self,
        encoder: Encoder,
        rate: int,
        cpu: Counter,
        audio: Counter,
        timer: Callable[[], float],
    ) -> None:
        self.pre_skip = encoder.pre_skip
        self.repaired = encoder.repaired
        self._encoder = encoder
        self._rate = rate
        self._cpu = cpu
        self._audio = audio
        self._timer = timer

    def encode(self, pcm: Pcm) -> Encoded:
        """See :class:`~playhead.codecs.base.Encoder`."""
        started = self._timer()
        try:
            return self._encoder.encode(pcm)
        finally:
            self._cpu.inc(self._timer() - started)
            self._audio.inc(len(pcm) / self._rate)
            self.repaired = self._encoder.repaired

    def flush(self) -> Encoded:
        """See :class:`~playhead.codecs.base.Encoder`."""
        started = self._timer()
        try:
            return self._encoder.flush()
        finally:
            self._cpu.inc(self._timer() - started)
