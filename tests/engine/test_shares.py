"""Service by account and, within one, by client: what is made counts, wanted or not."""

import pytest
from doubles import FRAME_SECONDS, HZ, request
from playhead.engine.capacity import KNOWN, Capacity
from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.ledger import ENTRANCE, SETTLED
from playhead.engine.playhead import Playhead
from playhead.engine.policy import LaneLimits
from playhead.engine.shares import MOST_OWED, Shares
from playhead.engine.stream import Stream
from playhead.engine.types import Lane, Request

LIMITS = LaneLimits(1, dict.fromkeys(Lane, 1), dict.fromkeys(Lane, 1))
SECOND = 1.0 / FRAME_SECONDS  # in frames


def stream(asked: Request, ready: int = 0, taken: int = 0) -> Stream:
    head = Playhead(HZ, 0.0)
    return Stream(asked, head, LeadLearner(LeadLimits()), ready=ready, taken=taken)


def measured(backbone: float, codec: float) -> Capacity:
    """Lane seconds of each per second of speech."""
    capacity = Capacity(LIMITS)
    capacity.note(Lane.LM, backbone * KNOWN, 1, KNOWN)
    capacity.note(Lane.BACKGROUND, codec * KNOWN, 1, KNOWN)
    return capacity


def test_clients_of_an_account_are_told_apart_and_others_do_not_matter_to_them() -> None:
    shares = Shares(FRAME_SECONDS)
    ann, bob = request(1, "ann", account="shop"), request(2, "bob", account="shop")
    eve = request(3, "eve")
    for asked in (ann, bob, eve):
        shares.join(asked)
    shares.charge(ann, 2 * SECOND)
    shares.charge(bob, SECOND)
    shares.charge(eve, 5 * SECOND)
    served = [shares.served(asked) for asked in (ann, bob, eve)]
    assert served == [(3.0, 2.0), (3.0, 1.0), (5.0, 5.0)]


def test_a_client_under_a_new_name_does_no_better_than_the_others_of_its_account() -> None:
    shares = Shares(FRAME_SECONDS)
    stays, old = request(1, "stays", account="shop"), request(2, "old", account="shop")
    for asked in (stays, old):
        shares.join(asked)
        shares.charge(asked, SECOND)
    shares.leave(stream(old), Capacity(LIMITS))
    shares.forget("old")
    new = request(3, "new", account="shop")
    shares.join(new)
    assert shares.served(stays) == (2.0, 1.0)
    assert shares.served(new) == (2.0, 1.0 + ENTRANCE - SETTLED), (
        "where the old one stood, on credit"
    )


def test_within_an_account_what_was_made_in_plenty_is_soon_no_debt() -> None:
    shares = Shares(FRAME_SECONDS)
    much, little = request(1, "much", account="shop"), request(2, "little", account="shop")
    for asked in (much, little):
        shares.join(asked)
    for _ in range(20):
        shares.charge(much, SECOND)
    assert shares.served(much)[1] <= MOST_OWED + 2.0
    assert shares.served(much)[0] == 20.0


def test_what_is_thrown_away_is_charged_by_what_it_took() -> None:
    shares = Shares(FRAME_SECONDS)
    leaves, stays = request(1, "leaves", account="shop"), request(2, "stays", account="shop")
    shares.join(leaves)
    shares.join(stays)
    shares.leave(stream(leaves, ready=round(8 * SECOND), taken=0), measured(0.01, 0.03))
    assert shares.served(stays)[0] == pytest.approx(2.0)


def test_while_costs_are_unknown_frames_that_nobody_decodes_are_free() -> None:
    shares = Shares(FRAME_SECONDS)
    leaves, stays = request(1, "leaves", account="shop"), request(2, "stays", account="shop")
    shares.join(leaves)
    shares.join(stays)
    shares.leave(stream(leaves, ready=100), Capacity(LIMITS))
    assert shares.served(stays) == (0.0, 0.0)


def test_nothing_is_left_when_all_have_gone() -> None:
    shares = Shares(FRAME_SECONDS)
    asked = request(1, "ann", account="shop")
    shares.join(asked)
    shares.charge(asked, SECOND)
    shares.forget("ann")
    shares.forget("nobody")
    shares.leave(stream(asked), Capacity(LIMITS))
    assert (shares._within, shares._payers, shares.accounts.clients) == ({}, {}, 0)
    shares.join(asked)
    assert shares.served(asked) == (0.0, 0.0)


def test_a_client_that_leaves_for_good_between_its_utterances_is_forgotten_by_its_account() -> None:
    shares = Shares(FRAME_SECONDS)
    ann, bob = request(1, "ann", account="shop"), request(2, "bob", account="shop")
    shares.join(ann)
    shares.join(bob)
    shares.charge(ann, 2 * SECOND)
    shares.leave(stream(ann), Capacity(LIMITS))
    shares.join(request(3, "ann", account="shop"))
    assert shares.served(ann)[1] == 2.0, "the next utterance of the same client"
    shares.leave(stream(ann), Capacity(LIMITS))
    shares.forget("ann")
    shares.join(ann)
    assert shares.served(ann)[1] == pytest.approx(ENTRANCE - SETTLED), "a newcomer's place"
