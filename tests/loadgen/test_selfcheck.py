"""The generator proves itself, and the proof notices when it should fail."""

import re

import pytest
from loadgen_kit import record
from playhead.loadgen.listener import Stall
from playhead.loadgen.record import Lag, Record
from playhead.loadgen.scripted import RATE, Spoken
from playhead.loadgen.selfcheck import GAPS, check, first_audio, omission, planted_stalls

ORIGIN = 50.0


def pair(**values: object) -> tuple[Record, Spoken]:
    """Asked at 1.0 s of the run; every chunk left exactly when the script says."""
    left = [ORIGIN + 1.0 + after for after, _ in GAPS]
    lengths = [samples / RATE for _, samples in GAPS]
    stalls = [
        Stall(1.05 + lengths[0], 0.40 - 0.05 - lengths[0], 1),
        Stall(1.40 + lengths[1], 0.64 - 0.40 - lengths[1], 2),
    ]
    given = {"first_playable": 1.0504, "stalls": stalls, **values}
    return record(0, 1.0, **given), Spoken("x", ORIGIN + 1.0, left)


def test_small_errors_are_good() -> None:
    assert first_audio([pair()], ORIGIN).good
    assert planted_stalls([pair()], ORIGIN).good


@pytest.mark.parametrize("first", [1.053, None])
def test_a_wrong_or_missing_first_audio_is_noticed(first: float | None) -> None:
    assert not first_audio([pair(first_playable=first)], ORIGIN).good
    assert not first_audio([], ORIGIN).good


@pytest.mark.parametrize(
    "stalls",
    [
        [],
        [Stall(1.15, 0.25, 1)],
        [Stall(1.15, 0.25, 1), Stall(1.6, 0.05, 2)],
        [Stall(1.15, 0.25, 1), Stall(1.59, 0.04, 2)],
    ],
)
def test_a_missed_or_wrong_stall_is_noticed(stalls: list[Stall]) -> None:
    assert not planted_stalls([pair(stalls=stalls)], ORIGIN).good
    assert not planted_stalls([], ORIGIN).good


def test_what_a_late_generator_missed_is_told_apart() -> None:
    missed = pair(stalls=[Stall(1.15, 0.25, 1)])  # intended at 1.0 s
    for lags, told in (
        ([Lag(1.6, 0.03)], "0 of 1 utterances have others, and 1 while the generator was late"),
        ([Lag(1.6, 0.01)], "1 of 1 utterances have others;"),
        ([Lag(0.9, 0.03), Lag(1.9, 0.03)], "1 of 1 utterances have others;"),
    ):
        found = planted_stalls([missed], ORIGIN, lags)
        assert found.detail.startswith(told)
        assert not found.good


def test_omission_is_noticed() -> None:
    waited = [record(n, 1.1 + n, first_playable=3.05) for n in range(2)]
    assert omission(waited).good
    assert not omission([*waited, record(2, 1.5, first_playable=1.55)]).good
    assert not omission([*waited, record(2, 1.5)]).good
    assert not omission([]).good


@pytest.mark.slow
def test_the_generator_proves_itself() -> None:
    findings = {finding.claim: finding for finding in check(rate=8.0, seconds=4.0)}
    planted = findings["every planted stall, with its start and length"].detail
    # Milliseconds depend on what else this machine does; what a generator sees that is not late
    # itself does not.
    told = re.match(
        r"0 of 32 utterances have others(?:, and (\d+) while the generator was late)?;", planted
    )
    assert told, planted
    assert int(told[1] or 0) <= 8, "it is late now and then, not always"
    assert findings["a freeze of 2 s is seen by those who were to start in it"].good
