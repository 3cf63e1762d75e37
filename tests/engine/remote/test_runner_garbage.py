"""The model's process looks for garbage as soon as it has nothing open."""

import socket
from types import SimpleNamespace

import pytest
from doubles import FakeRunner, request
from playhead.engine import garbage
from playhead.engine.policy import LaneLimits
from playhead.engine.remote import runner_wire as wire
from playhead.engine.remote.runner_host import Hosted, RunnerHost
from playhead.engine.types import Lane

LIMITS = LaneLimits(3, dict.fromkeys(Lane, 1), dict.fromkeys(Lane, 4))


def test_garbage_is_looked_for_between_utterances(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def collect() -> int:
        found.append("collected")
        return 0

    grown = garbage.FLOOR + garbage.EACH
    gc = SimpleNamespace(get_count=lambda: (grown, 0, 0), collect=collect)
    monkeypatch.setattr(garbage, "gc", gc)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        host = RunnerHost(Hosted(FakeRunner(), LIMITS), ours)
        host.take([wire.Open(request(7))])
        assert found == []
        host.take([wire.Close(7)])
        assert found == ["collected"]
