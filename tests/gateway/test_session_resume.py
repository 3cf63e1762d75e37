"""A refusal tells the owner how far it was heard, and everybody else nothing at all."""

import pytest
from playhead.gateway.effects import Close, Send
from playhead.gateway.messages import ErrorEvent, ResumeFrom
from playhead.gateway.session_resume import REPLAY_LOST, refusal, refuse_resume
from playhead.gateway.session_types import Outcome, Tombstone, digest

OUTCOME = Outcome(epoch=3, heard=1_200, heard_text="Hello", unheard_text=" world")
STONE = Tombstone("s1", digest("right"), OUTCOME, expires=700.0)


def test_the_owner_learns_how_far_it_was_heard() -> None:
    send, close = refuse_resume(ResumeFrom("s1", "right", 5), STONE, 699.9)
    assert isinstance(send, Send)
    assert isinstance(send.message, ErrorEvent)
    assert send.message.code == "resume_failed"
    assert (send.message.epoch, send.message.heard) == (3, 1_200)
    assert (send.message.heard_text, send.message.unheard_text) == ("Hello", " world")
    assert (send.message.recovered, send.message.reason) == (False, "ended")
    assert close == Close(4001, "resume failed")


@pytest.mark.parametrize(
    ("request_", "stone", "now"),
    [
        (ResumeFrom("s1", "wrong", 5), STONE, 1.0),
        (ResumeFrom("s2", "right", 5), STONE, 1.0),
        (ResumeFrom("s1", "right", 5), STONE, 700.0),
        (ResumeFrom("s1", "right", 5), None, 1.0),
        (ResumeFrom("s1", "right", 5), Tombstone("s1", digest("right"), None, 700.0), 1.0),
    ],
    ids=["token", "session", "expired", "unknown", "never spoke"],
)
def test_all_others_look_the_same(
    request_: ResumeFrom, stone: Tombstone | None, now: float
) -> None:
    assert refuse_resume(request_, stone, now) == refusal(None, "ended")


def test_a_session_that_lives_says_that_too_much_was_missed() -> None:
    send, _ = refusal(OUTCOME, REPLAY_LOST)
    assert isinstance(send, Send)
    assert isinstance(send.message, ErrorEvent)
    assert (send.message.recovered, send.message.reason) == (False, "replay_lost")
    unknown, _ = refusal(None, REPLAY_LOST)
    assert isinstance(unknown, Send)
    assert isinstance(unknown.message, ErrorEvent)
    assert (unknown.message.recovered, unknown.message.reason) == (False, "unknown")
