"""What a report plots, before anybody draws it."""

from loadgen_kit import chunk, record, run
from playhead.loadgen.charts import charts
from playhead.loadgen.figures import Figures, figures
from playhead.loadgen.listener import Stall


def heard(rate: float, label: str = "", **plan: str) -> Figures:
    kept = record(
        0, 1.0, dispatched=1.0, first_playable=1.1, started=1.1, ended=2.0, samples=100,
        chunks=[chunk(1.1)],
        stalls=[Stall(1.2, 0.15, -1)],
    )  # fmt: skip
    return figures([run(kept, rate=rate, label=label, **plan)])


def test_one_setting_is_shown_in_detail() -> None:
    made = charts([heard(1.0), heard(2.0)])
    assert [chart.name for chart in made] == ["ttfa", "stalls", "audio", "flight"]
    named = {series.name: list(series.points) for chart in made for series in chart.series}
    assert list(named) == ["p50", "p95", "p99", "any stall", "> 100 ms", "received", "most"]
    assert [(rate, round(value)) for rate, value in named["p95"]] == [(1.0, 100), (2.0, 100)]
    assert named["any stall"] == named["> 100 ms"] == [(1.0, 100.0), (2.0, 100.0)]


def test_several_settings_are_compared() -> None:
    made = charts([heard(1.0, "none"), heard(1.0, "reported")])
    assert [chart.name for chart in made] == ["ttfa", "stalls", "held"]
    assert all([s.name for s in chart.series] == ["none", "reported"] for chart in made)


def test_an_urgency_experiment_is_a_frontier_for_each_rate() -> None:
    rows = [
        heard(rate, f"none {lead}", signal="none", lead=lead) for rate in (1, 2) for lead in "12"
    ]
    made = charts(rows)
    assert [chart.name for chart in made] == ["frontier-1", "frontier-2"]
    assert [len(series.points) for series in made[0].series] == [2]


def test_what_nobody_heard_is_not_plotted() -> None:
    silent = figures([run(record(0, 1.0, fault="unreachable"))])
    assert charts([silent]) == charts([]) == []
