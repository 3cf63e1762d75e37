"""Quick form of bench/reliability/overload.py: twice the demand that can be met."""

from overload import Crowd, Step

CAPACITY = 20.0


def test_who_is_let_in_keeps_its_speech_and_nobody_more_than_its_share() -> None:
    steps = [Step(2.0, 14.0), Step(0.5, 8.0)]
    crowded, after = Crowd(CAPACITY, steps, dict.fromkeys("abcd", 1.0)).run()
    assert crowded.refused > 0.3 * crowded.offered
    assert crowded.stalled == 0
    assert crowded.heard / crowded.seconds > 0.95 * CAPACITY
    assert after.stalled == 0
    assert after.last_refusal <= 5.0, "it recovers"


def test_a_greedy_key_gets_its_share_and_what_others_leave() -> None:
    weights = {"greedy": 6.0, "b": 1.0, "c": 1.0}
    (step,) = Crowd(CAPACITY, [Step(3.0, 14.0)], weights).run()
    fair = sum(step.accounts.values()) / len(weights)
    assert step.accounts["greedy"] < 1.35 * fair
    assert min(step.accounts.values()) > 0.75 * fair
