"""Who is let in: by what fits, by what is owed, and by shares."""

import math
from dataclasses import replace

from playhead.engine.admission import (
    CAUGHT_UP,
    COME_BACK,
    CROWDED,
    GUESSED_COST,
    LEEWAY,
    PAID_BACK,
    ROOM,
    RUSH,
    SAFE,
    SOON,
    Load,
    crowded_out,
    refusal,
)
from playhead.engine.places import TAKEN
from playhead.engine.policy import PolicyConfig

CONFIG = PolicyConfig(max_live=10, max_utilisation=0.9)
CALM = Load(live=3, playing=3, missing=0.0, cost=0.1)


def why(load: Load, config: PolicyConfig = CONFIG, workers: int = 1) -> str:
    refused = refusal(load, workers, config)
    if refused is None:
        return ""
    assert refused.code == "overloaded"
    assert refused.retry_after > 0
    return refused.message


def test_a_calm_machine_lets_in() -> None:
    assert why(CALM) == ""


def test_the_places_are_counted() -> None:
    assert why(replace(CALM, live=9)) == ""
    assert "10 utterances" in why(replace(CALM, live=10, playing=0))


def test_the_measured_cost_is_counted() -> None:
    assert why(Load(9, 3, 0.0, 0.2)) == ""  # 80 %
    assert "100%" in why(Load(4, 4, 0.0, 0.2))
    assert why(Load(4, 4, 0.0, 0.2), workers=2) == "", "half of two workers"


def test_a_machine_where_nobody_plays_never_refuses() -> None:
    assert why(Load(3, 0, 0.0, 50.0)) == ""


def test_a_burst_is_let_in_as_fast_as_it_can_be_made_safe() -> None:
    can = 0.0
    while not why(replace(CALM, missing=can)):
        can += SAFE
    assert (can - SAFE + SAFE) * CALM.cost <= SOON < (can + SAFE) * CALM.cost
    refused = refusal(replace(CALM, missing=can), 1, CONFIG)
    assert refused is not None
    assert 0.0 < refused.retry_after < 1.0
    assert "owed" in refused.message


def test_a_machine_that_is_nearly_full_owes_no_more_than_it_can_make_good() -> None:
    """Four fifths go to those who play: a second of the rest is all that may be owed."""
    load = Load(8, 8, 0.0, 0.1)
    rest = CAUGHT_UP * (1.0 - 8 * 0.1)
    assert rest < SOON
    most = rest / 0.1 - SAFE
    assert why(replace(load, missing=most - 0.01)) == ""
    assert "owed" in why(replace(load, missing=most + 0.01))
    refused = refusal(replace(load, missing=1e6), 1, CONFIG)
    assert refused is not None
    assert refused.retry_after == COME_BACK, "nobody is sent away for longer"


def test_who_listens_has_slack_before_more_are_let_in() -> None:
    """What they lack of it is owed as newcomers' first seconds are, but passes through no lane of
    first chunks."""
    most = SOON / CALM.cost - SAFE
    assert why(replace(CALM, thin=most - 0.01)) == ""
    assert "owed" in why(replace(CALM, thin=most + 0.01))
    assert why(replace(CALM, missing=most / 2, thin=most / 2 - 0.01)) == ""
    assert "owed" in why(replace(CALM, missing=most / 2, thin=most / 2 + 0.01))
    rushed = Load(9, 100, 0.0, 0.001, urgent=0.05)
    assert why(replace(rushed, thin=2 * RUSH / rushed.urgent)) == ""


def test_first_chunks_pass_through_a_lane_of_their_own() -> None:
    """There is room in the long run, but the urgent lane has its hands full."""
    load = Load(100, 100, 0.0, 0.001, urgent=0.05)
    most = RUSH / load.urgent - SAFE
    assert most * load.cost < SOON, "the rest of the machine would not mind"
    assert why(replace(load, live=9, missing=most - 0.01)) == ""
    late = replace(load, live=9, missing=most + 0.01)
    assert "first chunks" in why(late)
    refused = refusal(late, 1, CONFIG)
    assert refused is not None
    assert 0.0 < refused.retry_after < 0.1
    hopeless = refusal(replace(late, missing=100.0), 1, CONFIG)
    assert hopeless is not None
    assert hopeless.retry_after == COME_BACK


def test_the_fuller_the_machine_the_fewer_newcomers_at_a_time() -> None:
    load = Load(9, 100, 0.0, (1.0 - ROOM / 2) / 100, urgent=0.05)
    most = RUSH / 2 / load.urgent - SAFE
    assert why(replace(load, missing=most - 0.01)) == ""
    assert "first chunks" in why(replace(load, missing=most + 0.01))


def test_what_is_owed_is_guessed_until_it_is_known() -> None:
    most = SOON / GUESSED_COST
    assert why(Load(1, 1, most - SAFE, 0.0)) == ""
    assert "owed" in why(Load(1, 1, most, 0.0))


def test_where_places_are_the_only_limit_nothing_is_owed() -> None:
    config = PolicyConfig(max_live=10, max_utilisation=math.inf)
    assert why(Load(1, 1, 1e9, 5.0), config) == ""


def test_a_crowded_machine_is_shared_out() -> None:
    crowded = replace(CALM, live=8, playing=4, cost=0.0)
    assert why(replace(crowded, accounts=2, own=4)) == ""
    assert "share" in why(replace(crowded, accounts=2, own=5))
    assert why(replace(crowded, accounts=2, own=5, live=6)) == "", "there is room for all"
    assert why(replace(crowded, accounts=1, own=8)) == "", "nobody else wants it"
    assert why(replace(crowded, accounts=30, own=0)) == "", "one place is everybody's"
    assert "share" in why(replace(crowded, accounts=30, own=1))


def test_shares_follow_the_measured_cost() -> None:
    load = Load(7, 7, 0.0, 0.1, accounts=2, own=3)  # nine places, 89 % promised
    assert 8 * 0.1 / CONFIG.max_utilisation > CROWDED
    assert why(load) == ""
    assert "share" in why(replace(load, own=4))


def test_what_an_account_had_before_others_is_made_up_for() -> None:
    load = Load(7, 7, 0.0, 0.1, accounts=2, own=3)  # four and a half places each
    assert why(load) == ""
    assert why(replace(load, ahead=0.4 * PAID_BACK)) == ""
    assert "share" in why(replace(load, ahead=0.6 * PAID_BACK)), "it can have three of them"
    assert "share" in why(replace(load, own=4))
    assert why(replace(load, own=4, ahead=-0.6 * PAID_BACK)) == "", "and the other one five"


def test_no_debt_takes_more_than_a_part_of_the_places() -> None:
    load = Load(7, 7, 0.0, 0.1, accounts=2, own=0)
    most = int(4.5 * (1.0 - LEEWAY))
    assert why(replace(load, own=most - 1, ahead=1e9)) == ""
    assert "share" in why(replace(load, own=most, ahead=1e9))
    gained = int(4.5 * (1.0 + LEEWAY))
    assert why(replace(load, own=gained - 1, ahead=-1e9)) == ""
    assert "share" in why(replace(load, own=gained, ahead=-1e9))
    assert why(Load(7, 7, 0.0, 0.1, accounts=99, own=0, ahead=1e9)) == "", "one is everybody's"


def test_who_was_served_most_waits_longest_and_is_promised_less() -> None:
    owed = replace(CALM, missing=0.75 * SOON / CALM.cost - SAFE)
    assert why(owed) == ""
    assert why(replace(owed, ahead=SAFE)) == ""
    assert "owed" in why(replace(owed, ahead=SAFE + 0.1))


def test_who_comes_back_late_goes_on_if_its_share_is_still_there() -> None:
    assert crowded_out(Load(9, 8, 0.0, 0.1), 1, CONFIG) is None
    refused = crowded_out(Load(9, 9, 0.0, 0.1), 1, CONFIG)
    assert refused is not None
    assert (refused.code, refused.message) == ("overloaded", TAKEN)
    assert crowded_out(Load(1, 0, 0.0, 9.0), 1, CONFIG) is None, "an empty machine is big enough"
