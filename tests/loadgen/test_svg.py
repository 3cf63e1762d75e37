"""Plots are well-formed and show what they are given."""

import xml.etree.ElementTree as ET

import pytest
from loadgen_kit import chunk, record
from playhead.loadgen.charts import Chart, Series
from playhead.loadgen.listener import Stall
from playhead.loadgen.record import Record
from playhead.loadgen.svg import draw, timeline


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)


def test_a_chart_has_a_marker_for_each_point_and_escapes_its_names() -> None:
    text = draw(
        Chart(
            "ttfa",
            "TTFA <&>",
            "rate",
            "ms",
            [Series("p50 <", [(2, 10), (1, 5)]), Series("p95", [])],
        )
    )
    root = parsed(text)
    assert len(root.findall(".//circle")) == 2
    xs = [float(each.attrib["cx"]) for each in root.iter("circle")]
    assert xs == sorted(xs)
    ys = [float(each.attrib["cy"]) for each in root.iter("circle")]
    assert ys[0] > ys[1], "a greater value is higher up"
    assert "TTFA &lt;&amp;&gt;" in text


@pytest.mark.parametrize("points", [[(3.0, 0.0)], [(1.0, 0.0), (1.0, 5.0)], [(1e-3, 1e6), (9, 2)]])
def test_any_range_fits(points: list[tuple[float, float]]) -> None:
    root = parsed(draw(Chart("x", "x", "x", "y", [Series("s", points)])))
    for each in root.iter("circle"):
        assert 0 <= float(each.attrib["cx"]) <= 640
        assert 0 <= float(each.attrib["cy"]) <= 300


def told(**values: object) -> Record:
    given = {
        "chunks": [chunk(1.2, lane="urgent"), chunk(1.6, 100, lane="odd"), chunk(1.7, samples=0)],
        "samples": 200,
        "started": 1.2,
        "stalls": [Stall(1.3, 0.3, 1)],
    }
    return record(0, 1.0, **{**given, **values})


def test_the_timeline_shows_chunks_and_stalls() -> None:
    root = parsed(timeline(told()))
    assert len(root.findall(".//circle")) == 2
    assert root.findtext(".//rect/title") == "stall of 300 ms"
    assert len(root.findall(".//polyline")) == 2


def test_a_listener_that_stood_still_has_no_playhead_line() -> None:
    root = parsed(timeline(told(held=1.0)))
    assert len(root.findall(".//polyline")) == 1


def test_the_playhead_ends_at_a_barge_in() -> None:
    whole, cut = timeline(told()), timeline(told(cancel_sent=1.65))
    assert last_point(cut) != last_point(whole)
    assert last_point(timeline(told(cancel_sent=5.0))) == last_point(whole)


def last_point(text: str) -> str:
    return parsed(text).findall(".//polyline")[1].attrib["points"].split()[-1]


def test_an_utterance_without_audio_has_no_timeline() -> None:
    assert timeline(record()) == ""
