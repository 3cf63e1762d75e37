"""Qwen3-TTS behind a real gateway and the Python client, tiny and on the CPU."""

import asyncio
import contextlib
import json
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("safetensors", reason="safetensors is not installed (extra: qwen)")

import runner_lab as lab
from playhead.client import connect
from playhead.client.errors import ServerError, UtteranceFailed
from playhead.client.voice import Voice
from playhead.engine.lanes import cpu_limits
from playhead.engine.loop import Engine, EngineConfig
from playhead.engine.models.qwen3_tts.counts import Limits
from playhead.engine.models.qwen3_tts.prompt import Clone
from playhead.engine.models.qwen3_tts.runner import Qwen3Runner
from playhead.engine.policy import PolicyConfig
from playhead.engine.types import Request
from playhead.gateway.serve import server_facts
from playhead.gateway.server import GatewayServer, bind
from playhead.gateway.settings import Settings

TEXT = "One two three"


class Watched:
    """What a runner was asked to open."""

    def __init__(self, model: Qwen3Runner) -> None:
        self.model, self.requests = model, list[Request]()
        opened = model.open

        def open_one(request: Request) -> None:
            self.requests.append(request)
            opened(request)

        model.open = open_one  # type: ignore[method-assign]


@contextlib.asynccontextmanager
async def served(model: Qwen3Runner, slots: int = 4) -> AsyncIterator[str]:
    settings = Settings(port=0, close_timeout=1.0, drain_timeout=0.0)

    def open_engine(deliver: Any) -> Engine:
        config = EngineConfig(cpu_limits(1), PolicyConfig(max_live=slots))
        engine = Engine(model, config, deliver)
        engine.start()
        return engine

    server = GatewayServer(settings, server_facts(settings, model.info), open_engine)
    await server.start(bind(settings.host, settings.port))
    try:
        yield f"ws://127.0.0.1:{server.port}"
    finally:
        server.hurry()
        await server.drain()


def talk(model: Qwen3Runner, script: Any, slots: int = 4, **options: Any) -> None:
    async def main() -> None:
        async with (
            served(model, slots) as url,
            connect(url, playback_rate=2.0, **options) as voice,
        ):
            await script(voice, url)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_language_and_instruction_reach_the_model(tmp_path: Path) -> None:
    watched = Watched(lab.runner(tmp_path, frames=lambda _: 4))

    async def script(voice: Voice, _: str) -> None:
        ready = voice.ready
        assert (ready.language, ready.instruct) == ("auto", True)
        assert ready.languages == ("auto", "chinese", "english", "sichuan_dialect")
        assert ready.voices == ("eric", "ryan", "serena")
        spoken = voice.speak(TEXT, voice="serena", language="English", instruct="gravely, ")
        assert len(await spoken.read()) > 0
        assert (await spoken.done()).estimated is False
        await voice.speak(TEXT).done()

    talk(watched.model, script)
    asked = [(r.voice, r.language, r.instruct) for r in watched.requests]
    assert asked == [("serena", "english", "gravely,"), ("eric", "auto", "")]


@pytest.mark.parametrize(
    ("asked", "code", "expected"),
    [
        ({"voice": "nobody"}, "unknown_voice", "one of eric, ryan, serena"),
        ({"language": "klingon"}, "unknown_language", "one of auto, chinese, english, sichuan"),
        ({"instruct": "sing"}, "unsupported_instruct", "no instruct"),
    ],
)
def test_what_a_model_has_not_opens_nothing(
    tmp_path: Path, asked: dict[str, str], code: str, expected: str
) -> None:
    watched = Watched(lab.runner(tmp_path, form="0b6"))

    async def script(voice: Voice, url: str) -> None:
        with pytest.raises(ServerError) as here:
            voice.speak(TEXT, **asked)  # type: ignore[arg-type]
        with pytest.raises(ServerError) as there:
            async with connect(url, **asked):  # type: ignore[arg-type]
                pass
        for caught in (here, there):
            assert caught.value.code == code
            assert caught.value.expected.startswith(expected)

    talk(watched.model, script)
    assert watched.requests == []


def test_a_cloned_voice_is_a_voice(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    vector = rng.standard_normal(64).astype(np.float32)
    clone = Clone(vector, rng.integers(0, 2048, (5, 16)), (4, 5, 6))
    model = lab.runner(tmp_path, kind="base", clones={"ada": clone}, frames=lambda _: 4)

    async def script(voice: Voice, _: str) -> None:
        assert voice.ready.voices == ("ada",)
        assert not voice.ready.instruct
        assert len(await voice.speak(TEXT).read()) > 0

    talk(model, script)


def test_a_described_voice_is_the_only_one(tmp_path: Path) -> None:
    watched = Watched(lab.runner(tmp_path, kind="voice_design", frames=lambda _: 4))

    async def script(voice: Voice, _: str) -> None:
        assert voice.ready.voices == ("designed",)
        assert voice.ready.instruct
        assert len(await voice.speak(TEXT, instruct="An old man", language="english").read()) > 0
        with pytest.raises(ServerError) as caught:
            voice.speak(TEXT, voice="ryan")
        assert (caught.value.code, caught.value.expected) == ("unknown_voice", "one of designed")

    talk(watched.model, script)
    asked = [(r.voice, r.language, r.instruct) for r in watched.requests]
    assert asked == [("designed", "english", "An old man")]


def test_random_weights_say_so(tmp_path: Path) -> None:
    async def script(voice: Voice, url: str) -> None:
        def readiness() -> dict[str, Any]:
            with urllib.request.urlopen(url.replace("ws:", "http:") + "/readyz") as answer:
                body: dict[str, Any] = json.load(answer)
                return body

        load = (await asyncio.to_thread(readiness))["load"]
        assert load["random_weights"] is True
        assert load["model"] == voice.ready.model == "qwen3-tts-1b7-custom-voice-random"

    talk(lab.runner(tmp_path, frames=lambda _: 4), script)


def test_what_never_ends_is_done_with_its_budget(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, limits=Limits(frames_base=3, frames_per_token=0))

    async def script(voice: Voice, _: str) -> None:
        outcome = await voice.speak(TEXT).done()
        assert outcome.reason == "length_budget"  # type: ignore[union-attr]

    talk(model, script)


def test_a_text_beyond_the_context_fails_alone(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, positions=40, frames=lambda _: 4)

    async def script(voice: Voice, _: str) -> None:
        with pytest.raises(UtteranceFailed) as caught:
            await voice.speak("word " * 60).done()
        assert caught.value.code == "bad_value"
        assert "at most 39 fit" in str(caught.value)
        assert caught.value.expected == "a request that keeps to this"
        assert len(await voice.speak(TEXT).read()) > 0

    talk(model, script)


def test_an_instruction_beyond_the_context_takes_no_slot(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, positions=40, frames=lambda _: 4)

    async def script(voice: Voice, _: str) -> None:
        with pytest.raises(UtteranceFailed) as caught:
            await voice.speak(TEXT, instruct="slowly " * 60).done()
        assert caught.value.code == "bad_value"
        assert model._table.free == 4

    talk(model, script)


def test_more_utterances_than_slots_are_told_when_to_come_back(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, slots=2, frames=lambda _: 60)

    async def script(voice: Voice, url: str) -> None:
        first = voice.speak(TEXT)
        await first.opened()
        async with connect(url) as second:
            with pytest.raises(UtteranceFailed) as caught:
                await second.speak(TEXT).done()
        assert caught.value.code == "overloaded"
        assert caught.value.retry_after
        await first.cancel()

    talk(model, script, slots=1)
