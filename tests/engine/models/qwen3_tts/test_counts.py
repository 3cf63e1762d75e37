"""The arrays of a step's bookkeeping."""

import numpy as np
import pytest
from playhead.engine.models.qwen3_tts.counts import (
    NEVER,
    OVER,
    READING,
    RUNNING,
    Counts,
    Ints,
    Limits,
)

ENDED = 1
PAD = 7
LIMITS = Limits(frames_base=10, frames_per_token=2, repeats=5, silence=1.5)


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def counts(streams: int = 3, slots: int = 5) -> Counts:
    """Streams in the first slots."""
    made = Counts(slots, 40, PAD, LIMITS)
    for slot in range(streams):
        made.begin(slot, 8)
    return made


def land(them: Counts, slots: Ints, **given: Ints) -> list[int]:
    """A frame of each, asked for before."""
    life = given.get("life", them.life[slots])
    them.ask(slots)
    zero = np.zeros_like(slots)
    return them.land(slots, life, given.get("status", zero), given.get("repeats", zero))


def test_the_budget_of_a_text() -> None:
    assert LIMITS.frames(3) == 16


def test_a_stream_begins_with_nothing() -> None:
    them = counts()
    land(them, ints(1, 2))
    them.texts[1, :3] = 4
    them.hear(ints(1), np.array([2.0]), np.array([True]))
    them.watched[1], them.allowed[1], them.stop[1], them.decoded[1] = True, 3, 4, 1
    them.over(1)
    life = int(them.life[1])
    them.begin(1, 9)
    assert (int(them.life[1]), int(them.phase[1]), int(them.rows[1])) == (life + 1, RUNNING, 9)
    for column in (them.made, them.ahead, them.owed, them.notes, them.watched, them.decoded):
        assert not column[1]
    assert them.quiet[1] == 0.0
    assert (them.allowed[1], them.stop[1]) == (NEVER, NEVER)
    assert (them.texts[1] == PAD).all()
    assert them.made[2] == 1, "another is as it was"
    assert them.full(1) == 32


def test_who_can_go_on() -> None:
    them = counts(5)
    assert them.able(every := ints(0, 1, 2, 3, 4)) is every
    them.phase[0] = READING
    them.over(1)
    them.allowed[2], them.made[2], them.ahead[2] = 5, 3, 2
    them.allowed[3], them.made[3], them.ahead[3] = 6, 3, 2
    assert them.able(every).tolist() == [3, 4]
    assert them.able(ints(5, -1)).tolist() == [], "the row of nobody"


def test_the_text_that_joins_is_the_latest_frames() -> None:
    them = counts()
    them.texts[1] = np.arange(40)
    them.made[1], them.ahead[1] = 5, 2
    assert them.ask(ints(1, 2)).tolist() == [6, PAD]
    assert them.ask(ints(1)).tolist() == [7]
    assert (int(them.ahead[1]), int(them.ahead[2])) == (4, 1)
    them.made[1] = 400
    assert them.ask(ints(1)).tolist() == [39], "beyond the context there is no text"


def test_frames_land() -> None:
    them = counts()
    assert land(them, ints(2, 0)) == []
    assert (them.made[:3].tolist(), them.owed[:3].tolist()) == ([1, 0, 1], [1, 0, 1])
    assert them.ahead[:3].tolist() == [0, 0, 0]


def test_an_end_is_no_frame_and_is_judged_singly() -> None:
    them = counts()
    assert land(them, ints(2, 0, 1), status=ints(0, ENDED, 0)) == [1]
    assert them.made[:3].tolist() == [0, 1, 1]


def test_a_last_frame_is_judged_singly() -> None:
    them = counts()
    them.stop[1] = 2
    assert land(them, ints(0, 1, 2)) == []
    assert land(them, ints(0, 1, 2)) == [1]


@pytest.mark.parametrize(("repeats", "quiet"), [(5, 0.0), (0, 1.5)])
def test_what_goes_nowhere_is_judged_singly(repeats: int, quiet: float) -> None:
    them = counts()
    them.quiet[1] = quiet
    them.watched[2] = True
    given = {"repeats": ints(0, repeats, 0)}
    assert land(them, ints(0, 1, 2), **given) == [], "it is not watched yet"
    them.watched[1] = True
    assert land(them, ints(0, 1, 2), **given) == [1]


def test_what_is_nobodys_does_not_land() -> None:
    """Of a stream that has left, of one that is over; places are those of the whole batch."""
    them = counts(4)
    life = them.life[ints(0, 1, 2, 3)]
    them.begin(0, 8)
    them.over(1)
    them.stop[3] = 1
    assert land(them, ints(0, 1, 2, 3), life=life) == [3]
    assert them.made[:4].tolist() == [0, 0, 1, 1]


def test_frames_are_told_once() -> None:
    them = counts()
    for _ in range(2):
        land(them, ints(0, 2))
    frames, notes, hungry = them.tell(ints(2, 1, 0, -1))
    assert frames.tolist() == [2, 0, 2, 0]
    assert not notes.any()
    assert not hungry.any()
    assert them.tell(ints(0, 2))[0].tolist() == [0, 0]


def test_who_needs_more_said() -> None:
    them = counts(5)
    them.over(0)
    them.notes[1] = True
    them.allowed[:4] = 1
    land(them, ints(0, 1, 2, 3, 4))
    them.ask(ints(3))  # its next frame is on its way
    frames, notes, hungry = them.tell(ints(0, 1, 2, 3, 4))
    assert frames.tolist() == [0, 1, 1, 1, 1]
    assert notes.tolist() == [True, True, False, False, False]
    assert hungry.tolist() == [False, True, True, False, False]
    assert not them.tell(ints(0, 1))[1].any()
    assert them.phase[0] == OVER


def test_frames_are_decoded_in_order_and_once_made() -> None:
    them = counts()
    them.made[:3], them.decoded[:3] = (4, 4, 0), (2, 2, 0)
    given = ints(0, 0, 1, 2), ints(2, 2, 3, 0), ints(2, 3, 1, 1)
    assert them.ready(*given).tolist() == [True, False, False, False]


def test_silence_adds_up_until_something_is_heard() -> None:
    them = counts()
    for _ in range(2):
        them.hear(ints(0, 2), np.array([1.0, 0.25]), np.array([False, True]))
    assert them.quiet[:3].tolist() == [2.0, 0.0, 0.25]
