"""Who is live, who plays, what they lack and whose they are: at a known cost."""

import math
import random
from itertools import count

import pytest
from doubles import HZ, report, request
from playhead.engine.admission import SAFE, SLACK, Load
from playhead.engine.capacity import Capacity
from playhead.engine.census import BEGUN, FEW, FRESH_EACH, Census
from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.ledger import ServiceLedger
from playhead.engine.playhead import Playhead
from playhead.engine.policy import LaneLimits, PolicyConfig
from playhead.engine.stream import Stream
from playhead.engine.types import PLACE_KEPT, Lane, ListenerState

CONFIG = PolicyConfig(max_live=10, max_utilisation=0.9)
CAPACITY = Capacity(LaneLimits(1, dict.fromkeys(Lane, 1), dict.fromkeys(Lane, 1)))
CUT = ListenerState.SUSPENDED


class House:
    """A census with the streams it is of."""

    def __init__(self) -> None:
        self.numbers = count(1)
        self.streams: dict[int, Stream] = {}
        self.ledger = ServiceLedger()
        self.census = Census(self.streams, self.ledger)

    def enter(self, payer: str = "a", sent: float = 0.0, lead: float | None = None) -> Stream:
        number = next(self.numbers)
        learner = LeadLearner(LeadLimits(fixed=lead))
        stream = Stream(request(number, account=payer), Playhead(HZ, 0.0), learner)
        if sent:
            stream.playhead.on_sent(round(sent * HZ), 0.0)
        self.streams[number] = stream
        self.ledger.join(payer)
        self.census.enter(stream, 0.0)
        return stream

    def leave(self, stream: Stream) -> None:
        del self.streams[stream.request.utterance]
        self.ledger.leave(stream.request.payer)
        self.census.leave(stream)

    def load(self, now: float, payer: str = "a", config: PolicyConfig = CONFIG) -> Load:
        return self.census.load(CAPACITY, config, payer, now)

    def missing(self, now: float) -> float:
        return self.load(now).missing


def test_nobody_is_missing_anything_in_an_empty_house() -> None:
    assert House().load(0.0) == Load(0, 0, 0.0, 0.0, accounts=1, own=0)


def test_missing_is_what_listeners_lack() -> None:
    house = House()
    for sent in (0.0, 0.2, 5.0):
        house.enter(sent=sent)
    assert house.missing(0.0) == pytest.approx(2 * SAFE - 0.2)
    assert house.missing(4.9) == pytest.approx(2 * SAFE + SAFE - 0.1)


def test_nobody_lacks_more_than_its_lead() -> None:
    """An operator that holds all leads at 0.3 s would else never see anybody safe."""
    house = House()
    house.enter(sent=0.25, lead=0.3)
    assert house.missing(0.0) == pytest.approx(0.05)
    house.enter(sent=0.3, lead=0.3)
    assert house.missing(0.0) == pytest.approx(0.05)


def test_who_is_no_newcomer_should_have_slack() -> None:
    """Beyond being safe: what it lacks of that is told apart."""
    house = House()
    house.enter(sent=BEGUN - 0.1)
    house.enter(sent=BEGUN + 0.1)
    load = house.load(0.2)
    assert (load.missing, load.thin) == (0.0, pytest.approx(SLACK - BEGUN + 0.1))
    load = house.load(BEGUN - 0.2)
    assert load.missing == pytest.approx((SAFE - 0.1) + (SAFE - 0.3))
    assert load.thin == pytest.approx(SLACK - SAFE)


def test_no_slack_is_asked_of_a_shorter_lead() -> None:
    house = House()
    house.enter(sent=BEGUN + 0.1, lead=0.8)
    house.enter(sent=BEGUN + 0.1, lead=SAFE)
    load = house.load(BEGUN)
    assert load.missing == pytest.approx(2 * (SAFE - 0.1))
    assert load.thin == pytest.approx(0.8 - SAFE)


def test_nobody_has_too_little_slack_who_is_owed_nothing() -> None:
    house = House()
    spoken, talker = house.enter(sent=2.0), house.enter(sent=2.0)
    spoken.ended = True
    talker.chunks = 3
    house.census.hold(house.enter(sent=2.0), ListenerState.PAUSED, 0.0)
    load = house.load(5.0)
    assert (load.missing, load.thin) == (0.0, 0.0)


def test_a_liar_takes_no_more_slack_than_the_belief_allows() -> None:
    """Who says that it is always dry counts as one that plays as fast as anybody can."""
    house = House()
    for number in range(2):
        stream = house.enter(sent=2.0)
        if number:
            dry = report(number + 1, 2 * HZ, 0, ListenerState.STALLED, at=0.5)
            assert stream.playhead.on_report(dry, 0.5)
    honest, lied = (stream.playhead.runway(0.5) for stream in house.streams.values())
    assert 0.0 < honest - lied <= 0.31
    assert house.load(1.0).thin <= 0.31


def test_nothing_is_missing_where_nothing_is_to_be_made() -> None:
    house = House()
    over, held, spoken = house.enter(), house.enter(), house.enter()
    over.dead = True
    house.census.hold(held, ListenerState.PAUSED, 0.0)
    spoken.ended, spoken.ready, spoken.taken = True, 4, 4
    assert house.missing(0.0) == 0.0
    spoken.taken = 3
    assert house.missing(1.0) == SAFE


def test_who_waits_for_more_text_is_owed_nothing_until_it_comes() -> None:
    house = House()
    talker = house.enter(sent=2.0)
    talker.chunks = 3
    assert house.missing(5.0) == 0.0
    for owed in ({"steppable": True}, {"stepping": True}, {"decoding": True}, {"ready": 1}):
        for name, value in owed.items():
            setattr(talker, name, value)
        assert house.missing(5.0) == SAFE, owed
        for name in owed:
            setattr(talker, name, 0)
    talker.chunks = 0  # it has said that it will speak, and nothing else
    assert house.missing(5.0) == SAFE


def test_a_newcomer_lacks_no_more_than_it_is_made_to_hold() -> None:
    house = House()
    house.enter(lead=0.1)
    assert house.missing(0.0) == pytest.approx(0.1)


def test_the_load_is_counted_by_accounts() -> None:
    house = House()
    house.enter("a")
    house.enter("a", sent=0.2)
    house.census.hold(house.enter("b"), ListenerState.PAUSED, 0.0)
    assert house.load(0.0) == Load(3, 2, pytest.approx(2 * SAFE - 0.2), 0.0, accounts=2, own=2)
    assert house.load(0.0, "new").accounts == 3


def test_who_speaks_already_is_told_how_far_it_is_ahead() -> None:
    house = House()
    house.enter("a")
    house.enter("b")
    house.ledger.serve("a", 0.4)
    assert house.load(0.0).ahead == pytest.approx(0.2)
    assert house.load(0.0, "new").ahead == 0.0


def test_where_only_places_count_no_listener_is_looked_at() -> None:
    house = House()
    house.enter(sent=0.2)
    load = house.load(0.0, config=PolicyConfig(max_utilisation=math.inf))
    assert (load.live, load.playing, load.missing) == (1, 1, 0.0)


def test_who_was_cut_off_counts_for_a_while_and_then_no_more() -> None:
    house = House()
    house.census.hold(house.enter("a"), CUT, 0.0)
    house.census.hold(house.enter("b"), CUT, 5.0)
    early = house.load(PLACE_KEPT - 0.1)
    assert (early.live, early.playing, early.accounts, early.own) == (2, 2, 2, 1)
    late = house.load(PLACE_KEPT)
    assert (late.live, late.playing, late.accounts, late.own) == (1, 1, 2, 0)
    last = house.load(PLACE_KEPT + 5.0)
    assert (last.live, last.playing, last.accounts, last.own) == (0, 0, 1, 0)


def test_an_account_is_there_while_one_of_its_utterances_is() -> None:
    house = House()
    cut = house.enter("a")
    house.enter("a")
    house.census.hold(cut, CUT, 0.0)
    load = house.load(PLACE_KEPT, "b")
    assert (load.live, load.accounts, load.own) == (1, 2, 0)


def test_the_one_that_is_gone_longest_gives_its_slot() -> None:
    house = House()
    second, first, here = house.enter(), house.enter(), house.enter()
    house.census.hold(first, CUT, 0.0)
    house.census.hold(second, CUT, 1.0)
    house.census.hold(here, CUT, 0.0)
    house.census.hold(here, None, 2.0)
    assert house.census.longest_gone(PLACE_KEPT - 0.1) is None
    assert house.census.longest_gone(PLACE_KEPT + 2.0) is first
    house.leave(first)
    assert house.census.longest_gone(PLACE_KEPT + 2.0) is second


def test_few_are_looked_at_every_time() -> None:
    house = House()
    streams = [house.enter() for _ in range(FEW)]
    assert house.missing(0.0) == pytest.approx(FEW * SAFE)
    streams[0].playhead.on_sent(HZ, 0.0)
    assert house.missing(0.0) == pytest.approx((FEW - 1) * SAFE)


def test_between_two_looks_who_comes_and_ends_is_counted() -> None:
    house = House()
    known = [house.enter(sent=5.0) for _ in range(FEW + 100)]
    held = house.enter()
    house.census.hold(held, ListenerState.PAUSED, 0.0)
    assert house.load(0.0).playing == FEW + 100
    house.enter()
    house.leave(known[0])
    house.leave(held)
    soon = house.load(90 * FRESH_EACH)
    assert (soon.live, soon.playing, soon.missing) == (FEW + 100, FEW + 100, SAFE)
    known[1].playhead.hold(ListenerState.PAUSED, 0.0)
    assert house.load(90 * FRESH_EACH).playing == FEW + 100, "not looked at yet"
    assert house.load(105 * FRESH_EACH).playing == FEW + 99


def test_no_more_is_looked_at_than_a_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House()
    for _ in range(FEW + 100):
        house.enter(sent=3.0)
    looks = 0
    runway = Playhead.runway

    def counted(head: Playhead, now: float) -> float:
        nonlocal looks
        looks += 1
        return runway(head, now)

    monkeypatch.setattr(Playhead, "runway", counted)
    for submit in range(1_000):
        house.load(submit * 1e-3)
    assert looks <= (1.0 + FEW / 100) / FRESH_EACH, "a submit a millisecond, for a second"
    assert looks >= 0.7 * (1.0 + FEW / 100) / FRESH_EACH, "and as fresh as that allows"


@pytest.mark.parametrize("seed", range(20))
def test_a_fresh_look_finds_what_counting_everybody_would(seed: int) -> None:
    """Whatever has happened before: places, accounts and seconds, against the definition."""
    rng = random.Random(seed)
    house, now = House(), 0.0
    for _ in range(60):
        now += rng.uniform(0.0, 1.0)
        _happen(house, rng, now)
        if rng.random() < 0.5:
            house.load(now)
    now += 1.0
    load = house.load(now)
    there = [s for s in house.streams.values() if not _gone(s, now)]
    payers = {stream.request.payer for stream in there} | {"a"}
    assert load.live == len(there)
    assert load.playing == sum(s.away_since is not None or not s.playhead.frozen for s in there)
    assert load.accounts == len(payers)
    assert load.own == sum(stream.request.payer == "a" for stream in there)
    lacking = [SAFE - s.playhead.runway(now) for s in there if not s.playhead.frozen]
    assert load.missing == pytest.approx(sum(seconds for seconds in lacking if seconds > 0))


def _gone(stream: Stream, now: float) -> bool:
    return stream.away_since is not None and now - stream.away_since >= PLACE_KEPT


def _happen(house: House, rng: random.Random, now: float) -> None:
    streams = list(house.streams.values())
    what = rng.random()
    if what < 0.4 or not streams:
        house.enter(rng.choice("abc"))
    elif what < 0.55:
        rng.choice(streams).playhead.on_sent(rng.randrange(1, 3 * HZ), now)
    elif what < 0.65:
        house.leave(rng.choice(streams))
    else:
        state = rng.choice([None, CUT, CUT, ListenerState.PAUSED])
        house.census.hold(rng.choice(streams), state, now)
