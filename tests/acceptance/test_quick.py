"""The vendors' own clients that install in seconds, unmodified, with one short text each: what
``make acceptance`` does with more of them and at length."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from acceptance_rig import OWN, Result, Served, right, run_client, serve, timed

pytestmark = pytest.mark.slow

TEXT = "The clocks were striking thirteen."


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serve() as served:
        yield served


def run(server: Served, script: str, out: Path) -> Result:
    return run_client(OWN, script, out=out / "speech.wav", text=TEXT, http=server.api)


def test_openai(server: Served, tmp_path: Path) -> None:
    result = run(server, "openai_speech.py", tmp_path)
    right(result, TEXT)
    assert result.told["events"] >= 1
    assert result.told["refused"]["param"] == "voice"
    assert server.idle_within(1.0), "the stream that was left early is over"


def test_cartesia(server: Served, tmp_path: Path) -> None:
    result = run(server, "cartesia_http.py", tmp_path)
    right(result, TEXT)
    timed(result.told["words"], TEXT)
    assert result.told["refused"] == 404
    assert server.idle_within(1.0), "the stream that was left early is over"


def test_elevenlabs(server: Served, tmp_path: Path) -> None:
    result = run(server, "elevenlabs_http.py", tmp_path)
    right(result, TEXT)
    timed(result.told["words"], TEXT)
    assert result.told["refused"] == [404, "voice_id_does_not_exist"]
    assert server.idle_within(1.0), "the stream that was left early is over"
