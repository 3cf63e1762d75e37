"""The background codec lane on one of several parts of the device, whichever is right by load.

Every part has graphs of its own: a graph keeps to the part that it was captured in. Another part is
taken between two dispatches only, when the host has seen the end of all that the lane was given, so
that the codec's state of a stream is never written by one part and read by another meanwhile.
"""

import threading
from collections.abc import Callable, Mapping, Sequence

from playhead.engine.models.qwen3_tts.codec_rounds import Ints
from playhead.engine.models.qwen3_tts.cuda_codec import CodecLane
from playhead.engine.models.qwen3_tts.splits import Done, Splits, mean_slack
from playhead.engine.types import Pcm


class ChosenLane:
    """As ``CodecLane``. Any thread: as long as anything is at work the part stays."""

    def __init__(
        self,
        lanes: Mapping[int, CodecLane],
        splits: Splits,
        clock: Callable[[], float],
        frame_seconds: float,
        streams: Callable[[], int],
    ) -> None:
        """``lanes`` by the sizes of ``splits``. ``streams`` counts those that are open."""
        self.lanes, self._streams = lanes, streams
        self._splits, self._clock, self._frame_seconds = splits, clock, frame_seconds
        self._lock = threading.Lock()
        self._at_work = 0
        self._size = splits.size

    @property
    def part(self) -> int:
        """Multiprocessors of the part in use, or ``WHOLE``."""
        return self._size

    @property
    def switches(self) -> int:
        """Times that another part was taken."""
        return self._splits.switches

    def decode(self, slots: Ints, first: Ints, frames: Ints, slacks: Sequence[float | None]) -> Pcm:
        """See ``CodecLane.decode``. ``slacks`` of the chunks."""
        begin, lane = self._enter()
        done: Done | None = None
        try:
            made = lane.decode(slots, first, frames)
            speech = int(frames.sum()) * self._frame_seconds
            full = 2 * len(slots) >= lane.most
            done = Done(begin, self._clock(), speech, mean_slack(slacks), full)
            return made
        finally:
            self._leave(done)

    def _enter(self) -> tuple[float, CodecLane]:
        with self._lock:
            now = self._clock()
            if not self._at_work:
                self._size = self._splits.choose(now, self._streams())
            self._at_work += 1
            return now, self.lanes[self._size]

    def _leave(self, done: Done | None) -> None:
        with self._lock:
            self._at_work -= 1
            if done is not None:
                self._splits.note(done)
