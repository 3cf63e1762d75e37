"""A wire encoder whose processor time is counted."""

from playhead.codecs.base import Encoded, Encoder, Pcm
from playhead.engine import clock
from prometheus_client import Counter


class MeteredEncoder:
    """Encodes through ``encoder`` and counts, wherever it runs: seconds of the thread's processor
    time into ``cpu``, seconds of audio at ``rate`` Hz into ``audio``."""

    def __init__(self, encoder: Encoder, rate: int, cpu: Counter, audio: Counter) -> None:
        self.pre_skip = encoder.pre_skip
        self.repaired = encoder.repaired
        self._encoder = encoder
        self._rate = rate
        self._cpu = cpu
        self._audio = audio

    def encode(self, pcm: Pcm) -> Encoded:
        """See :class:`~playhead.codecs.base.Encoder`."""
        started = clock.thread_cpu()
        try:
            return self._encoder.encode(pcm)
        finally:
            self._cpu.inc(clock.thread_cpu() - started)
            self._audio.inc(len(pcm) / self._rate)
            self.repaired = self._encoder.repaired

    def flush(self) -> Encoded:
        """See :class:`~playhead.codecs.base.Encoder`."""
        started = clock.thread_cpu()
        try:
            return self._encoder.flush()
        finally:
            self._cpu.inc(clock.thread_cpu() - started)
