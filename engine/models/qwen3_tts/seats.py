"""Which stream sits in which slot, and what a step answers to all of them.

The usual answer of a step is a number of frames and nothing else. It is made once per utterance and
number; only streams that end, fail, run out of text or have a warning are answered singly.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import repeat

import numpy as np
from playhead.engine.answers import Plain
from playhead.engine.models.qwen3_tts.counts import READING, Counts, Ints
from playhead.engine.models.qwen3_tts.frames import ENDED, POISONED
from playhead.engine.models.qwen3_tts.stream import End, Stream
from playhead.engine.types import Finish, StepResult

NO_NUMBERS = "the model gave no numbers for this utterance"
_log = logging.getLogger(__name__)


class Seats:
    """Streams sit down, land frames and are answered on the LM lane; ``leave`` comes from outside,
    when nothing of the stream is running but frames that the device makes ahead."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._slots: dict[int, int] = {}
        self._streams: dict[int, Stream] = {}  # by slot
        self._usual: list[Plain] = []

    def sit(self, stream: Stream, slot: int) -> None:
        """``stream``, whose prompt is laid out, gets ``slot``."""
        stream.sit(slot)
        self._streams[slot] = stream
        self._slots[stream.request.utterance] = slot

    def leave(self, stream: Stream) -> None:
        """The stream is over, whether or not it ever sat. Frames that the device still makes of it
        are nobody's."""
        utterance = stream.request.utterance
        for usual in self._usual:
            usual.pop(utterance, None)
        if stream.slot is None:
            return
        self._counts.over(stream.slot)
        del self._slots[utterance], self._streams[stream.slot]

    def slots(self, utterances: Sequence[int]) -> Ints:
        """Int64, one each; -1 for a stream without, which is also the row of nobody."""
        return np.array(list(map(self._slots.get, utterances, repeat(-1))), np.int64)

    def at(self, slot: int) -> Stream:
        """Who sits there."""
        return self._streams[slot]

    def land(self, slots: Ints, life: Ints, status: Ints, repeats: Ints) -> None:
        """See ``Counts.land``. Streams that end with that frame are not asked for more."""
        for place in self._counts.land(slots, life, status, repeats):
            self._judge(int(slots[place]), int(status[place]))

    def _judge(self, slot: int, status: int) -> None:
        stream = self._streams.get(slot)
        if stream is None:  # just left
            return
        stream.end = End()
        if status & POISONED:
            stream.poisoned = True
            stream.end = End(error=NO_NUMBERS)
        elif not status & ENDED and stream.made != stream.fixed_frames:
            _log.info("utterance %d reached its length budget", stream.request.utterance)
            stream.end = End(Finish.LENGTH_BUDGET)
        self._counts.over(slot)

    def answers(
        self, utterances: Sequence[int], told: Mapping[int, StepResult]
    ) -> list[StepResult]:
        """What there is to tell of each. ``told``: answers that are known already, by place."""
        if not utterances:
            return []
        slots = self.slots(utterances)
        frames, notes, hungry = self._counts.tell(slots)
        waiting = self._counts.phase[slots] == READING
        results = self._counted(utterances, frames)
        for place in np.flatnonzero(notes | hungry | waiting).tolist():
            results[place] = self._streams[int(slots[place])].answer(
                int(frames[place]), hungry=bool(hungry[place]), waiting=bool(waiting[place])
            )
        for place, answer in told.items():
            results[place] = answer
        return results

    def _counted(self, utterances: Sequence[int], frames: Ints) -> list[StepResult]:
        most = int(frames.max())
        self._usual += [Plain(count) for count in range(len(self._usual), most + 1)]
        if frames.min() == most:
            return list(map(self._usual[most].__getitem__, utterances))
        pairs = zip(frames.tolist(), utterances, strict=True)
        return [self._usual[count][utterance] for count, utterance in pairs]
