"""The simulator: the same seed gives the same run, and it tells the signals apart."""

import argparse
import random
from dataclasses import replace

import pytest
from playhead.engine import costs, simulate
from playhead.engine.lead import LeadLimits
from playhead.engine.policy import PolicyConfig
from playhead.engine.sim_client import Call, Caller, draw_frames
from playhead.engine.sim_listener import Habits, Mix, Network
from playhead.engine.sim_outcome import Outcome
from playhead.engine.simulator import Scenario, Simulator
from playhead.engine.types import Lane, ListenerState, Urgency


def scenario(urgency: str = "reported", lead: float | None = None, **changes: object) -> Scenario:
    limits = LeadLimits(fixed=lead)
    policy = PolicyConfig(Urgency(urgency), limits, max_live=10_000, max_utilisation=100.0)
    base = Scenario(costs.cpu(2), policy, rate=3.0, warmup=1.0, window=8.0)
    return replace(base, **changes)  # type: ignore[arg-type]


def run(*args: object, **changes: object) -> Outcome:
    return Simulator(scenario(*args, **changes)).run()  # type: ignore[arg-type]


def test_one_seed_gives_one_digest() -> None:
    assert run().digest == run().digest
    assert run().digest != run(seed=2).digest


def test_every_utterance_is_heard() -> None:
    outcome = run()
    assert outcome.utterances > 15
    assert len(outcome.ttfa) == outcome.utterances
    assert outcome.refused == 0


def test_ideal_listeners_never_stall_whatever_the_signal() -> None:
    for urgency in Urgency:
        assert run(urgency.value, 1.5, mix=Mix(ideal=True)).stalled == 0


def test_first_chunks_go_urgent_unless_there_is_no_urgency() -> None:
    reported, none = run("reported"), run("none")
    assert reported.chunks[Lane.URGENT] >= reported.utterances
    assert Lane.URGENT not in none.chunks


def test_shaky_listeners_stall_on_a_short_lead_and_not_when_leads_are_learned() -> None:
    changes = {"costs": costs.cpu(4), "rate": 6.0, "window": 25.0, "mix": Mix(shaky=0.5)}
    fixed = run("estimated", 0.8, **changes)
    learned = run("reported", None, **changes)
    assert fixed.stalled >= 10
    assert learned.stalled * 5 <= fixed.stalled


def test_liars_gain_nothing_from_their_neighbours() -> None:
    honest = run("reported", 1.5, mix=Mix(ideal=True))
    lying = run("reported", 1.5, mix=Mix(ideal=True, liars=0.0, shaky=0.0))
    assert lying.digest == honest.digest
    liars = run("reported", 1.5, mix=Mix(shaky=0.0, blocked=0.0, pauses=0.0, liars=0.5))
    assert liars.clamped > 0
    assert liars.share(liars.stalled) <= 0.2  # only those who say "full" starve, by their own word


def test_an_overload_is_refused_early() -> None:
    policy = PolicyConfig(max_live=4)
    outcome = run(policy=policy, rate=6.0)
    assert outcome.refused > 0
    assert outcome.stalled == 0 or outcome.share(outcome.stalled) < 0.1


def test_the_accelerators_urgent_lane_delays_the_backbone() -> None:
    table = costs.accelerator(24)
    assert table.decode(Lane.BACKGROUND, 1.0) > table.decode(Lane.URGENT, 1.0)
    outcome = run(costs=table, rate=20.0, window=4.0)
    assert outcome.chunks[Lane.URGENT] > 0
    assert len(outcome.ttfa) == outcome.utterances


def test_lengths_are_bounded() -> None:
    rng = random.Random(3)
    seconds = [draw_frames(rng, 0.08) * 0.08 for _ in range(2_000)]
    assert min(seconds) >= 0.95
    assert max(seconds) <= 15.21
    assert 5.2 < sum(seconds) / len(seconds) < 6.2


def call(**habits: object) -> Call:
    return Call(1, Caller("c", Network(), 1), Habits(**habits), 100, asked=0.0)  # type: ignore[arg-type]


def test_a_cut_holds_what_is_sent_and_keeps_its_order() -> None:
    one = call(cut_at=1.0, cut_for=0.5)
    assert one.arrival(10.0) == pytest.approx(10.03)
    assert one.arrival(11.0) == pytest.approx(11.5)
    assert 11.5 <= one.arrival(11.05) < one.arrival(11.1)
    assert one.arrival(12.0) == pytest.approx(12.03)


def test_lies_contradict_the_truth_but_add_up() -> None:
    for lie in ("empty", "full", "flip"):
        one = call(lies=lie)
        one.listener.arrive(1.0, False, 1.0)
        one.listener.advance(1.5)
        for _ in range(4):
            report = one.report(1.5, 24_000)
            assert report.received == report.consumed + report.buffered
        assert report.consumed != 12_000


def test_an_honest_report_says_what_is() -> None:
    one = call()
    one.listener.arrive(1.0, False, 1.0)
    one.listener.advance(1.5)
    report = one.report(1.5, 24_000)
    assert (report.received, report.consumed, report.buffered) == (24_000, 12_000, 12_000)
    assert report.state is ListenerState.PLAYING


def parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    simulate.add_arguments(parser)
    return parser.parse_args(words)


def test_the_command_prints_a_row_for_each_setting(capsys: pytest.CaptureFixture[str]) -> None:
    args = parse("--seconds", "4", "--rate", "2", "--urgency", "reported", "--urgency", "none")
    assert simulate.run(args) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[2:]] == [
        ["reported", "1.0"],
        ["reported", "2.0"],
        ["reported", "learned"],
        ["none", "1.0"],
        ["none", "2.0"],
    ]


def test_the_command_names_a_lead_it_does_not_understand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert simulate.run(parse("--lead", "long", "--ideal")) == 2
    assert "--lead 'long': expected 'learned'" in capsys.readouterr().err


def test_the_command_simulates_an_accelerator(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--machine", "accelerator", "--rate", "4", "--seconds", "2", "--lead", "1")
    assert simulate.run(parse(*words, "--urgency", "estimated")) == 0
    assert "of 132 SMs" in capsys.readouterr().out


def test_a_voice_as_it_is_served_takes_longer_at_times_but_not_on_average() -> None:
    table, rng = costs.cpu_served(), random.Random(1)
    luck = [table.luck(rng) for _ in range(4000)]
    assert min(luck) < 0.5
    assert max(luck) > 2.0
    assert sum(luck) / len(luck) == pytest.approx(1.0, rel=0.02)
    assert costs.cpu(2).luck(rng) == 1.0


def test_a_batch_of_several_sizes_takes_longer_than_one_of_one_size() -> None:
    table = costs.cpu_served()
    one, two = (table.decode(Lane.URGENT, 0.6, 2, sizes) for sizes in (1, 2))
    assert two - one == pytest.approx(table.decode_fixed)
    assert table.decode(Lane.URGENT, 0.6, 3) - one == pytest.approx(table.decode_each)
    assert table.decode(Lane.BACKGROUND, 0.6, 3, 2) > table.decode(Lane.BACKGROUND, 0.6, 3)
