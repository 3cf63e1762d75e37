"""report.html: complete, self-contained, and loud about invalid runs."""

import re
from dataclasses import replace

from loadgen_kit import chunk, record, run
from playhead.loadgen.figures import figures
from playhead.loadgen.listener import Stall
from playhead.loadgen.page import page
from playhead.loadgen.record import Run


def heard(rate: float, label: str = "") -> Run:
    kept = record(
        0, 1.0, dispatched=1.0, first_playable=1.1, started=1.1, ended=2.0, samples=100,
        chunks=[chunk(1.1)]
    )  # fmt: skip
    return run(kept, rate=rate, url="ws://<host>", label=label)


def test_it_has_its_plots_and_loads_nothing() -> None:
    runs = [heard(1.0), heard(2.0)]
    text = page([figures([each]) for each in runs], runs)
    assert text.count("<svg") == 5
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"(src|href)=|@import|url\(", text)
    assert "ws://&lt;host&gt;" in text
    assert "Invalid" not in text


def test_several_settings_are_compared() -> None:
    runs = [heard(rate, label) for rate in (1.0, 2.0) for label in ("none", "reported")]
    text = page([figures([each]) for each in runs], runs)
    assert text.count("<svg") == 4
    assert text.count("● none") == text.count("● reported") == 3
    assert "Audio held by listeners" in text


def test_an_urgency_experiment_is_a_frontier_for_each_rate() -> None:
    runs = [heard(rate, mode) for rate in (1.0, 2.0) for mode in ("none", "reported")]
    for each in runs:
        each.plan |= {"signal": each.plan["label"], "lead": "1"}
    text = page([figures([each]) for each in runs], runs)
    assert text.count("Stalls against barge-in waste") == 4  # a caption and a label each
    assert text.count("● none") == text.count("● reported") == 2


def test_invalid_runs_are_named() -> None:
    broken = heard(1.0)
    broken.complete = False
    assert "Invalid: strict, 1/s: run is partial" in page([figures([broken])], [broken])


def test_a_run_that_nobody_heard_still_has_a_page() -> None:
    silent = run(record(0, 1.0, fault="unreachable"))
    text = page([figures([silent])], [silent])
    assert "<svg" not in text, "an empty plot shows nothing"
    assert "faults: 1 unreachable" in text


def test_the_timeline_is_of_one_whose_playhead_is_known() -> None:
    known = heard(1.0)
    paused = replace(known.records[0], number=7, first_playable=1.5, held=0.5)
    known.records.append(paused)
    assert "Utterance 0: " in page([figures([known])], [known])
    paused.stalls = [Stall(1.6, 0.1, 1)]
    assert "Utterance 7: " in page([figures([known])], [known])
