"""One look over all live utterances: what could start now, in which lane, in which order."""

import math
from collections.abc import Iterable, Mapping

from playhead.engine import policy
from playhead.engine.events import Tally
from playhead.engine.meters import Meters
from playhead.engine.policy import Key, PolicyConfig
from playhead.engine.shares import Shares
from playhead.engine.stream import Sight, Stream
from playhead.engine.turn import Candidate, Step, Turn
from playhead.engine.types import Lane, ModelInfo, Urgency
from playhead.engine.watch import Watch

LOOKAHEAD = 1.0
"""Seconds of frames that the backbone may be ahead of the codec."""

PAUSES_AGAIN = 2.0
"""Seconds of lead per second of the machine's worst pause of late: the next may be longer, and when
it comes a listener may hold a chunk less than its lead."""

MOVED = 0.010
"""Seconds by which a deadline, a lead or the lanes' need may change before what was decided on them
is decided anew: most reports say what was believed, give or take a millisecond."""

EVERY_LANE = dict.fromkeys(Lane, 1 << 30)
NO_LANE: frozenset[Lane] = frozenset()
STEP = frozenset({Lane.LM})
CHUNK = {lane: frozenset({lane}) for lane in Lane}
CODEC = frozenset({Lane.URGENT, Lane.BACKGROUND})
USEFUL = {  # for who may step, may decode
    (False, False): NO_LANE,
    (True, False): STEP,
    (False, True): CODEC,
    (True, True): STEP | CODEC,
}


class Survey:
    """Applies the policy to each stream. Reads streams, shares and meters; writes only the
    queueing marks of a stream and the count of promotions."""

    def __init__(
        self,
        model: ModelInfo,
        config: PolicyConfig,
        shares: Shares,
        meters: Meters,
        tally: Tally,
        watch: Watch,
    ) -> None:
        self._model = model
        self._config = config
        self._shares = shares
        self._meters = meters
        self._tally = tally
        self._watch = watch
        self._frame_seconds = model.frame_samples / model.sample_rate
        self._least = 0.0  # seconds of lead that this machine itself needs
        self._least_of: dict[int, float] = {}  # of gateways whose listeners need more
        self._need = 0.0  # seconds, at the last look
        self._turnaround = 0.0  # seconds that an urgent chunk takes from wish to delivery

    def look(self, now: float, free: Mapping[Lane, int] = EVERY_LANE) -> Turn:
        """The chunks and steps that could start at ``now`` in the lanes that are ``free``, and how
        many each of these may take."""
        turn = Turn()
        self._watch.ring(now)  # first: who wakes by itself may want something else by now
        settled = self._watch.release(free)
        needed = self._need = self._needed()
        pauses = self._meters.pauses
        self._least = needed + PAUSES_AGAIN * pauses.worst(now)
        worse = pauses.elsewhere(now).items()
        self._least_of = {gateway: needed + PAUSES_AGAIN * seconds for gateway, seconds in worse}
        self._turnaround = self._meters[Lane.URGENT].sojourn.quantile(0.5)
        for stream in self._watch.awake(now):
            useful = USEFUL[stream.may_step, stream.may_decode]
            if stream.dead or not useful:
                self._watch.rest(stream, math.inf)
            elif useful.isdisjoint(free):
                self._watch.shelve(stream, useful)
            elif stream.request.utterance in settled:
                turn.add(None, self._step_again(stream, now))
            else:
                self._look_at(stream, needed, now, turn, free)
        turn.wake_at = min(turn.wake_at, self._watch.next_alarm())
        turn.sort()
        return turn

    def lead(self, stream: Stream) -> float:
        """The lead limit of a stream's listener: learned, but never less than the machine needs
        for itself; or the one for the unknown. A player that collects more than that before it
        starts needs its threshold and a little."""
        limits, head = self._config.lead, stream.playhead
        lead = limits.for_unknown
        if limits.fixed is None and head.use_reports:
            least = self._least_of.get(stream.request.gateway, self._least)
            own = min(limits.unknown, least + head.one_way)
            lead = max(stream.learner.limit, own)
        return max(lead, stream.request.start_threshold + limits.least / 2)

    def started(self, streams: Iterable[Stream]) -> None:
        """Work that the last look found for ``streams`` has started. Who had no other need not be
        looked at again: what a step makes is soon there, and all of it makes one chunk."""
        for stream in streams:
            if stream.stepping and (stream.decoding or stream.queued_at is None):
                self._watch.leave(stream, _pressing_at(stream))

    def outdated(self, stream: Stream, now: float) -> bool:
        """Whether a report changed what the last look at ``stream`` rested on. Who waits for audio
        is always looked at again."""
        seen = stream.seen
        if seen is None or stream.playhead.waiting:
            return True
        steady = abs(stream.playhead.deadline(now) - seen.deadline) <= MOVED  # no, of two infinite
        rises = max(self.lead(stream) - seen.lead, self._need - seen.needed)
        return not steady or rises > MOVED

    def margin(self, stream: Stream, now: float) -> float:
        """Seconds of slack below which a chunk of ``stream`` is urgent."""
        return _margin(stream, self._needed(), self.lead(stream), now)

    def _needed(self) -> float:
        """Seconds that the lanes were measured to need for a background chunk.

        In a crowd background work is overtaken for ever, and what it would take is not measured:
        whoever is promoted needs what the urgent lane takes.
        """
        needed = self._meters[Lane.BACKGROUND].sojourn.quantile(0.95)
        needed += self._meters[Lane.LM].service.quantile(0.95)
        return max(needed, self._meters[Lane.URGENT].sojourn.quantile(0.95))

    def _look_at(
        self, stream: Stream, needed: float, now: float, turn: Turn, free: Mapping[Lane, int]
    ) -> None:
        """Note what ``stream`` could start, or put it to rest."""
        head = stream.playhead
        deadline = head.deadline(now)
        runway = deadline - now if now < deadline < math.inf else head.runway(now)
        lead = self.lead(stream)
        stream.seen = Sight(now, deadline, lead, needed)
        over = runway + stream.decoding_seconds - lead
        if over >= 0.0:
            self._watch.rest(stream, stream.unpark_time(over, now))
            return
        key = self._key(stream, deadline, now)
        frames = 0 if stream.decoding else self._frames(stream, runway)
        chunk = None
        if frames:
            margin = _margin(stream, needed, lead, now)
            chunk = self._candidate(stream, frames, deadline, key, margin, now)
        step = self._step(stream, frames, key, deadline, now)
        wanted = (CHUNK[chunk.lane] if chunk else NO_LANE) | (STEP if step else NO_LANE)
        if not wanted:
            self._watch.rest(stream, _pressing_at(stream))
        elif not wanted.isdisjoint(free):
            turn.add(chunk, step)
        elif chunk is None:
            assert step is not None, "else nothing was wanted"
            until = self._chunk_at(stream, runway, now)
            self._watch.block(stream, STEP, step.key, until, settled=True)
        else:
            self._watch.block(stream, wanted, key, chunk.promotion)

    def _chunk_at(self, stream: Stream, runway: float, now: float) -> float:
        """When the frames of ``stream`` that are no chunk yet will be one, by time alone."""
        ladder, available = self._model.chunk_frames, stream.available()[0]
        over = runway - policy.enough_below(ladder, available, self._frame_seconds)
        return stream.unpark_time(over, now) if over > 0.0 else math.inf

    def _step_again(self, stream: Stream, now: float) -> Step:
        """The step that ``stream`` waited for and nothing else: no chunk of it is being decoded."""
        deadline = stream.playhead.deadline(now)
        return Step(stream, self._key(stream, deadline, now))

    def _step(
        self, stream: Stream, frames: int, key: Key, deadline: float, now: float
    ) -> Step | None:
        """The step that ``stream`` could make beside a chunk of ``frames``."""
        unheard = (stream.ready - stream.taken) * self._frame_seconds
        idle = not (frames or stream.decoding)
        if stream.may_step and (unheard < LOOKAHEAD or idle):
            return Step(stream, self._step_key(stream, key, deadline, idle, now))
        return None

    def _step_key(self, stream: Stream, key: Key, deadline: float, idle: bool, now: float) -> Key:
        """The turn of a step: that of a chunk that is due when all has been heard that is being
        decoded or waits for that. Beside such work (not ``idle``) it is no first need: among those
        who are dry it counts as served a chunk more, so that newcomers have theirs before."""
        if idle or self._config.urgency is Urgency.NONE:
            return key
        between = stream.decoding_seconds + (stream.ready - stream.taken) * self._frame_seconds
        chunk = self._model.chunk_frames[0] * self._frame_seconds
        return policy.at(key, deadline + between, self._soon(now), chunk)

    def _frames(self, stream: Stream, runway: float) -> int:
        available, ends = stream.available()
        cover = policy.cover(runway, self._turnaround)
        return policy.chunk_frames(
            self._model.chunk_frames, available, ends, cover, self._frame_seconds
        )

    def _candidate(
        self,
        stream: Stream,
        frames: int,
        deadline: float,
        key: Key,
        margin: float,
        now: float,
    ) -> Candidate:
        slack = deadline - now
        lane = policy.route(stream.playhead.waiting, slack, margin, self._config.urgency)
        self._note_queued(stream, lane, now)
        known = None if self._config.urgency is Urgency.NONE or math.isinf(slack) else slack
        promotion = math.inf
        if lane is Lane.BACKGROUND and known is not None:
            promotion = now + max(slack - margin, 1e-3)
        seconds = frames * self._frame_seconds
        return Candidate(stream, frames, key, lane, known, seconds, promotion)

    def _note_queued(self, stream: Stream, lane: Lane, now: float) -> None:
        """Remember since when a chunk waits, and count it when it changes to the urgent lane."""
        if stream.queued_at is None:
            stream.queued_at, stream.queued_lane = now, lane
        elif stream.queued_lane is Lane.BACKGROUND and lane is Lane.URGENT:
            stream.queued_lane = lane
            self._tally.promoted += 1

    def _key(self, stream: Stream, deadline: float, now: float) -> Key:
        utterance = stream.request.utterance
        if self._config.urgency is Urgency.NONE:
            queued = stream.queued_at if stream.queued_at is not None else now
            return policy.fifo(queued, utterance)
        served, own = self._shares.served(stream.request)
        return policy.order(deadline, served, own, self._soon(now), utterance)

    def _soon(self, now: float) -> float:
        """Who is dry before then counts as dry. In a crowd all are nearly dry: were only those who
        are dry already shared out by service, one with many utterances would always have a dry one,
        and go first."""
        return now + policy.OUTLAST * self._turnaround


def _margin(stream: Stream, needed: float, lead: float, now: float) -> float:
    # Half the lead at most: were everything urgent, nobody would measure that the background
    # lane has become fast again.
    head = stream.playhead
    return policy.margin(min(needed, lead / 2), head.one_way, 1.0 - head.confidence(now))


def _pressing_at(stream: Stream) -> float:
    """When a listener is nearly dry whose frames are too few for a chunk as long as it may be: they
    go then, though a step that makes more is not back."""
    if not stream.may_decode or stream.seen is None:
        return math.inf
    at = stream.seen.deadline - stream.seen.needed
    return at if at > stream.seen.at else math.inf
