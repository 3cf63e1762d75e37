"""The terminal's view."""

import pytest
from loadgen_kit import chunk, record, run
from playhead.loadgen.figures import figures
from playhead.loadgen.listener import Stall
from playhead.loadgen.record import Record
from playhead.loadgen.table import MOST_TOLD, notes, progress, table, verdict
from playhead.loadgen.tally import Tally


def heard(**values: object) -> Record:
    return record(
        0, 1.0, first_playable=1.1, ended=2.0, samples=100, chunks=[chunk(1.1)], **values
    )  # fmt: skip


def test_a_clean_row_says_strict() -> None:
    made = figures([run(heard())])
    text = table([made])
    head, row, note = text.splitlines()
    assert len(head) == len(row)
    assert row.split()[:5] == ["strict", "1", "1", "100.0", "100.0"]
    assert row.split()[-1] == "strict"
    assert "0 of 1 stalled; true share below 100.00% (95 %); seeds 0" in note


def test_a_text_in_pieces_is_told_from_its_first_byte_too() -> None:
    made = figures([run(heard(possible=1.05))])
    assert table([made]).splitlines()[1].split()[3] == "50.0"
    told = (
        "strict, 1/s: text in pieces; first audio after its first byte: p50 100.0 ms, p95 100.0 ms"
    )
    assert told in notes(made)


def test_a_long_name_does_not_move_the_columns() -> None:
    made = figures([run(heard(), label="reported learned:1.5")])
    head, row, _ = table([made]).splitlines()
    assert len(head) == len(row)


def test_short_stalls_are_lenient_long_ones_missed_with_their_cause() -> None:
    short = figures([run(heard(stalls=[Stall(1.2, 0.05, -1)]))])
    assert verdict(short) == "lenient"
    long = figures([run(heard(stalls=[Stall(1.2, 0.5, -1)]))])
    assert verdict(long) == "missed"
    assert "strict, 1/s: stalls by cause: engine 1" in notes(long)
    assert "strict, 1/s: 1 of 1 stalled" in notes(long)


def test_an_invalid_run_is_never_a_good_one() -> None:
    whole = run(heard())
    whole.complete = False
    made = figures([whole])
    assert verdict(made) == "INVALID"
    assert notes(made)[0] == "strict, 1/s: INVALID, run is partial"


def test_what_was_not_measured_is_a_dash() -> None:
    row = table([figures([run(record())])]).splitlines()[1].split()
    assert row[3:6] == ["-", "-", "-"]


def test_random_weights_are_told_beside_the_model() -> None:
    made = figures([run(heard())])
    assert not [note for note in notes(made) if "model" in note]
    for model, noise in (("hibari", ""), ("x-random", " (random weights: it speaks noise)")):
        made.server = {f'playhead_build_info{{version="1",model="{model}"}}': 1.0}
        assert f"strict, 1/s: model {model}{noise}" in notes(made)


def test_the_servers_lanes_are_told_when_it_tells_them() -> None:
    made = figures([run(heard())])
    assert not [note for note in notes(made) if "lanes" in note]
    busy, items = "playhead_lane_busy_seconds_total", "playhead_lane_items_total"
    made.server = {
        f'{busy}{{lane="urgent"}}': 0.25,
        f'{busy}{{lane="lm"}}': 0.5,
        f'{items}{{lane="urgent"}}': 1.0,
        f'{items}{{lane="background"}}': 3.0,
        f'{items}{{lane="lm"}}': 99.0,
    }
    assert (
        "strict, 1/s: server's lanes busy: lm 50%, urgent 25%; 25% of its chunks were urgent"
        in notes(made)
    )


def test_progress_in_one_line() -> None:
    tally = Tally(planned=9, started=4, ended=1, first_audio=[0.1234])
    assert progress(tally, 3.2, 60.0, 1) == (
        "    3 of 60 s: 4 of 9 started, 3 in flight, 0 stalled, 0 faulty, TTFA p95 123 ms"
    )
    assert progress(Tally(), -1.0, 60.0, 2).startswith("    0 of 60 s (process 1 of 2): 0 of 0")


@pytest.mark.parametrize(
    "fault",
    [
        *("unreachable", "refused_key", "protocol", "silence", "truncated", "wrong_format"),
        *("clock_backwards", "no_answer", "connection_lost", "timeout", "interrupted"),
    ],
)
def test_a_fault_is_named_in_the_summary_and_is_never_a_good_number(fault: str) -> None:
    made = figures([run(heard(fault=fault), heard())])
    assert verdict(made) == "missed"
    assert f"strict, 1/s: faults: 1 {fault}" in notes(made)


def test_a_server_may_say_what_it_likes_on_one_line() -> None:
    long = "no\x1b[2J\n" + 300 * "x"
    made = figures([run(heard(fault="failed", message=long), heard(fault="failed", message="2"))])
    (told,) = [note for note in notes(made) if note.startswith("strict, 1/s: failed: ")]
    assert told == "strict, 1/s: failed: no [2J " + (MOST_TOLD - 7) * "x"


def test_of_nobody_no_share_is_told() -> None:
    assert notes(figures([run(record(fault="timeout"))])) == [
        "strict, 1/s: nobody heard anything",
        "strict, 1/s: faults: 1 timeout",
    ]


def test_the_model_is_named() -> None:
    made = figures([run(heard())])
    made.model = "voice (random weights)"
    assert notes(made)[0] == "strict, 1/s: model voice (random weights)"
