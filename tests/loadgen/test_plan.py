"""Schedules: one seed, one schedule, whatever the server and the number of processes."""

from typing import Any

import pytest
from playhead.loadgen.plan import Plan, jobs
from playhead.loadgen.session import SessionError
from playhead.loadgen.texts import CODE_SWITCHING, Kind


def plan(**values: Any) -> Plan:
    return Plan(**{"url": "ws://x/v1/session", "rate": 5.0, **values})


def test_one_seed_gives_one_schedule() -> None:
    assert jobs(plan()) == jobs(plan(url="ws://other/", mix="people"))
    assert jobs(plan(seed=1)) != jobs(plan(seed=2))


def test_warm_up_is_not_counted() -> None:
    made = jobs(plan(arrivals="constant", rate=1.0, warmup=2.0, window=3.0))
    assert [(job.at, job.counted) for job in made] == [
        (0.0, False), (1.0, False), (2.0, True), (3.0, True), (4.0, True),
    ]  # fmt: skip


def test_processes_share_the_schedule_without_changing_it() -> None:
    whole = jobs(plan())
    parts = [jobs(plan(processes=3), process) for process in range(3)]
    assert sorted((job for part in parts for job in part), key=lambda job: job.number) == whole


@pytest.mark.parametrize("arrivals", ["poisson", "gamma"])
def test_random_arrivals_stay_in_the_run(arrivals: str) -> None:
    made = jobs(plan(arrivals=arrivals, warmup=1.0, window=9.0))
    assert made
    assert all(0 <= job.at < 10 for job in made)


def test_a_trace_is_cut_to_the_run() -> None:
    made = jobs(plan(arrivals="trace", trace=(0.0, 4.0, 9.0), warmup=1.0, window=5.0))
    assert [(job.at, job.counted) for job in made] == [(0.0, False), (4.0, True)]


def test_texts_are_of_the_asked_kind() -> None:
    assert {job.text for job in jobs(plan(texts=Kind.CODE_SWITCHING))} <= set(CODE_SWITCHING)


def test_a_plan_tells_itself() -> None:
    made = plan(seed=3, trace=(0.0, 1.0), mix="shaky")
    assert made.name == "shaky-rate-5-seed-3"
    assert plan(seed=3, mix="shaky", label="none").name == "none-rate-5-seed-3"
    assert made.length == 35.0
    assert made.listeners.name == "shaky"
    assert (made.as_json()["seed"], made.as_json()["trace"]) == (3, 2)


def test_a_plan_tells_no_secret_of_its_addresses() -> None:
    told = plan(url="ws://me:hush@h/v1", also=("ws://h/?ticket=hush",)).as_json()
    assert (told["url"], told["also"]) == ("ws://***@h/v1", ["ws://h/?ticket=***"])
    assert "hush" not in str(SessionError("unreachable", "cannot connect to ws://me:hush@h"))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"window": -1.0}, "window is -1"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"mix": "angels"}, "mix 'angels' is not known; one of strict"),
        ({"turns": 0}, "start at 1"),
        ({"target": "openai"}, "turns must be 1"),
        ({"target": "openai", "turns": 1, "pace": 20.0}, "takes a text at once"),
        ({"processes": 0}, "start at 1"),
    ],
)
def test_plans_that_make_no_sense_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        plan(**wrong)
