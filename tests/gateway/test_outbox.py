"""The ring keeps what the client may lack, within its bounds, and tells what it lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.engine.types import Lane
from playhead.gateway import messages as m
from playhead.gateway.outbox import OVERHEAD, Outbox, weigh


def started(seq: int) -> m.Started:
    return m.Started(seq=seq, epoch=seq)


def audio(seq: int, size: int = 100, words: int = 0) -> m.Audio:
    word = m.SpokenWord(text="w", position=0, char_start=0, char_end=1)
    return m.Audio(
        seq=seq,
        epoch=1,
        index=0,
        position=0,
        samples=size // 2,
        words=(word,) * words,
        lane=Lane.URGENT,
        slack=None,
        depth=0.0,
        sent=0.0,
        final=False,
        data=bytes(size),
    )


def box(count: int, most_bytes: int = 1_000_000, most_seconds: float = 1_000.0) -> Outbox:
    made = Outbox(most_bytes=most_bytes, most_seconds=most_seconds)
    for seq in range(1, count + 1):
        made.add(started(seq))
    return made


def numbers(outbox: Outbox, seq: int) -> list[int]:
    return [message.seq for message in outbox.after(seq)]


def test_replays_the_very_messages() -> None:
    made = box(2)
    kept = audio(3)
    made.add(kept)
    assert made.after(2)[0] is kept
    assert numbers(made, 0) == [1, 2, 3]
    assert numbers(made, 3) == []


def test_acknowledged_messages_are_gone() -> None:
    made = box(5)
    assert made.acknowledge(3)
    assert numbers(made, 3) == [4, 5]
    assert [made.covers(seq) for seq in (2, 3, 5, 6)] == [False, True, True, False]
    assert made.acknowledge(1)  # an old one is no news
    assert numbers(made, 3) == [4, 5]


def test_acknowledging_the_future_is_refused_and_changes_nothing() -> None:
    made = box(2)
    assert not made.acknowledge(3)
    assert numbers(made, 0) == [1, 2]


def test_numbers_have_no_gaps() -> None:
    with pytest.raises(AssertionError, match="without gaps"):
        box(1).add(started(3))


def test_bytes_are_bounded() -> None:
    made = box(4, most_bytes=3 * OVERHEAD)
    assert made.floor == 1
    assert numbers(made, 1) == [2, 3, 4]
    made.add(audio(5, size=4 * OVERHEAD))  # larger than the ring: not kept at all
    assert made.floor == 5
    assert not made.covers(4)
    assert made.covers(5)


def test_seconds_of_audio_are_bounded() -> None:
    made = box(0, most_seconds=1.0)
    for seq in range(1, 6):
        made.add(audio(seq), seconds=0.5)
    assert numbers(made, 3) == [4, 5]
    made.add(started(6))
    assert numbers(made, 3) == [4, 5, 6]


def test_seconds_do_not_drift() -> None:
    made = box(0, most_seconds=0.3)
    for seq in range(1, 1_001):
        made.add(audio(seq), seconds=0.1)
        made.acknowledge(seq)
    made.add(audio(1_001), seconds=0.3)
    assert made.covers(1_000)


def test_clear() -> None:
    made = box(3)
    made.clear()
    assert made.after(0) == []
    assert made.floor == made.last == 3


def test_weights() -> None:
    cancelled = m.Cancelled(
        seq=1, epoch=1, heard=0, heard_text="a" * 10, unheard_text="b" * 5, estimated=False
    )
    failed = m.Failed(
        seq=1,
        epoch=1,
        code="c",
        message="m",
        expected="e",
        heard=0,
        heard_text="",
        unheard_text="b" * 5,
    )
    assert weigh(started(1)) == OVERHEAD
    assert weigh(audio(1, size=100, words=2)) == 3 * OVERHEAD + 100
    assert weigh(cancelled) == OVERHEAD + 60
    assert weigh(failed) == OVERHEAD + 20


@given(st.lists(st.integers(0, 40) | st.none(), max_size=60), st.integers(0, 8))
def test_against_a_plain_list(steps: list[int | None], room: int) -> None:
    """``None`` adds a message, a number acknowledges it."""
    made = Outbox(most_bytes=room * OVERHEAD, most_seconds=1.0)
    given_out: list[m.NumberedMessage] = []
    floor = 0
    for step in steps:
        if step is None:
            given_out.append(started(len(given_out) + 1))
            made.add(given_out[-1])
            floor = max(floor, len(given_out) - room)
        elif made.acknowledge(step):
            floor = max(floor, step)
        assert made.floor == floor
        assert made.after(floor) == given_out[floor:]
