"""Decisions, as pure functions of state and ``now``.

Which lane a chunk takes, how big it is, whose turn it is, and who waits. Nothing
here keeps state, so each rule can be read, tested and simulated alone. Times are seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from playhead.engine.lead import LeadLimits
from playhead.engine.longest import Longest
from playhead.engine.types import Lane, Urgency

PAD = 0.020
"""Seconds added to the measured margin: one scheduling turn and the socket."""

GROWTH = 1.0
"""Share of the listener's runway that a chunk may last: decoding is many times faster than playing,
so a chunk as long as what is still held is done well before its time."""


OUTLAST = 2.0
"""Times the urgent lane's turnaround that a chunk should last, when that is longer than the runway:
of two neighbouring sizes of a ladder that doubles, the smaller still covers one turnaround."""


YIELDS_AFTER = 0.1
"""Seconds for which background work waits for the workers it may have, before it gets the reserve:
were half of two workers kept from it, every lead would sink to the margin at half load, and all
would be urgent."""


@dataclass(frozen=True, slots=True)
class PolicyConfig:
    """What an operator or an experiment may set."""

    urgency: Urgency = Urgency.REPORTED
    lead: LeadLimits = field(default_factory=LeadLimits)
    max_live: int = 64  # utterances with work to do at once
    max_utilisation: float = 0.95  # share of the lanes' measured capacity that may be promised
    longest: Longest = field(default_factory=Longest)  # speech that does not end by itself


@dataclass(frozen=True, slots=True)
class LaneLimits:
    """How much the machine takes at once.

    ``reserve`` workers are left free by background work, so that urgent work never queues behind a
    full house (unless there is only one worker). It is for bursts: when background work has waited
    for :data:`YIELDS_AFTER` seconds, it may have them too.
    """

    workers: int  # dispatches of all lanes together
    slots: dict[Lane, int]  # dispatches per lane
    batch: dict[Lane, int]  # utterances per dispatch
    reserve: int = 0

    def free(self, lane: Lane, busy: dict[Lane, int], *, yields: bool = False) -> int:
        """Dispatches of ``lane`` that may start now; ``yields``: the reserve as well."""
        if (own := self.slots[lane] - busy[lane]) <= 0:
            return 0
        left = self.workers - sum(busy.values())
        if lane is Lane.BACKGROUND and self.workers > 1 and not yields:
            left -= self.reserve
        return max(0, min(left, own))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an utterance is not let in, and when to try again."""

    code: str
    message: str
    retry_after: float


def margin(lanes: float, one_way: float, doubt: float) -> float:
    """Slack below which a chunk cannot be left to the background lane.

    ``lanes`` is what the lanes were measured to need: the 95th percentile of a background chunk
    from wish to delivery, and one LM step that may stand before it. The way to the listener and a
    little are added, and the way once more in proportion to ``doubt`` (0 for a belief that rests on
    a fresh report, 1 for an open-loop one, which may be wrong by that much).
    """
    return lanes + one_way + PAD + doubt * one_way


def route(first: bool, slack: float, needed: float, urgency: Urgency) -> Lane:
    """The codec lane of a chunk: urgent when it is the first or has too little slack."""
    if urgency is Urgency.NONE:
        return Lane.BACKGROUND
    return Lane.URGENT if first or slack < needed else Lane.BACKGROUND


def cover(runway: float, turnaround: float) -> float:
    """Seconds that the next chunk may last.

    As long as what the listener holds, but when the urgent lane is crowded no less than it takes to
    come round again (``turnaround``: measured, from wish to delivery): chunks that do not outlast
    the queue leave every listener dry, and the short ones cost most.
    """
    return max(GROWTH * runway, OUTLAST * turnaround)


def chunk_frames(
    ladder: Sequence[int], available: int, ends: bool, seconds: float, frame_seconds: float
) -> int:
    """Frames of the next chunk; 0 to wait for more.

    Small first, growing with what the listener holds: the largest size of ``ladder`` that lasts no
    longer than ``seconds`` (see :func:`cover`), at least the smallest. ``available`` frames are
    ready; when ``ends``, nothing can be added to them and a smaller rest is taken as it is. Waiting
    is safe: the size shrinks with the runway.
    """
    if available <= 0:
        return 0
    wanted = ladder[0]
    for size in ladder[1:]:
        if size * frame_seconds <= seconds:
            wanted = size
    if available < wanted:
        return available if ends else 0
    rest = available - wanted
    return available if ends and rest < ladder[0] and available <= ladder[-1] else wanted


def enough_below(ladder: Sequence[int], available: int, frame_seconds: float) -> float:
    """Seconds of runway below which ``available`` frames are a chunk at last, because a listener
    who holds less is given less: see :func:`chunk_frames`."""
    larger = next((size for size in ladder if size > available), 0)
    return larger * frame_seconds / GROWTH if available >= ladder[0] else 0.0


Key = tuple[float, float, float, int]
"""What work is sorted by, the least first."""


def order(deadline: float, served: float, own: float, soon: float, utterance: int) -> Key:
    """Sort key of work: earliest deadline first. Among those that will be dry before anything
    could reach them (``soon``), the least served: by who is answerable (``served``), then among
    one's own utterances (``own``)."""
    return (max(deadline, soon), served, own, utterance)


def at(key: Key, deadline: float, soon: float, served: float) -> Key:
    """The key that :func:`order` gives to other work of the same utterance, due at ``deadline``,
    when that and who answers for it have been served so many seconds more."""
    _, account, own, utterance = key
    return (max(deadline, soon), account + served, own + served, utterance)


def fifo(queued_at: float, utterance: int) -> Key:
    """Sort key of work without deadlines (``Urgency.NONE``): first come, first served."""
    return (queued_at, 0.0, 0.0, utterance)
