"""Our own services inside pipecat and LiveKit Agents: speech, words, and what was heard of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from acceptance_rig import TEXT, Served, right, run_client, serve, streamed

pytestmark = [pytest.mark.slow, pytest.mark.acceptance]


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serve() as served:
        yield served


@pytest.mark.parametrize("framework", ["pipecat", "livekit"])
def test_speech_words_and_what_was_heard(server: Served, tmp_path: Path, framework: str) -> None:
    result = run_client(
        "integrations",
        f"ours_{framework}.py",
        out=tmp_path / "speech.wav",
        ws=server.sessions.replace("http", "ws", 1),
    )
    right(result)
    streamed(result)
    times = [start for _, start in result.told["words"]]
    assert times == sorted(times)
    assert "".join("".join(word for word, _ in result.told["words"]).split()) == TEXT.replace(
        " ", ""
    )
    assert not result.told.get("errors")
    check_cut(result.told["cut"])
    assert server.idle_within(1.0)


def check_cut(cut: list[Any]) -> None:
    """Interrupted two seconds after the framework said that playing began: that much is heard."""
    ((heard, unheard),) = cut
    assert (heard + unheard).split() == TEXT.split()
    assert 3 <= len(heard.split()) <= 11, heard
