"""What people hear: the bundled voice, through ``playhead serve`` and real sockets."""

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from asr import transcribe, word_error_rate
from live import serve_process
from machine import kept_waiting
from playhead.client import AudioMessage, Counters, UtteranceFailed, connect
from playhead.engine.models.hibari.runner import HibariRunner
from playhead.engine.types import ChunkWork, Lane, Pcm, Request
from test_neighbours import (
    lies_that_it_is_dry,
    misbehave,
    never_reads,
    sends_garbage,
    starts_and_cancels,
)

pytestmark = pytest.mark.slow

RATE = 24000
SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "Yes, I would like a cup of coffee, please.",
    "Could you tell me the way to the railway station?",
    "She bought three apples, two pears and a loaf of bread.",
    "Our meeting starts at half past nine tomorrow morning.",
    "The weather forecast says that it will rain in the afternoon.",
    "He said: “I never want to see that movie again!”",
    "Although it was late, the children were still playing outside.",
    "Please turn left at the second traffic light, then go straight on.",
    "The company sold 250 houses last year.",
    "My telephone is old, but it still works very well.",
    "Science is a way of thinking much more than it is a body of knowledge.",
    "A long time ago, in a small village by the sea, there lived an old fisherman and his wife.",
    "No. I do not think so.",
    "Thank you very much for your help, and have a nice day.",
]
LONG = " ".join(SENTENCES[:3])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve_process() as address:
        yield address


def run(case: Coroutine[Any, Any, Any], seconds: float = 120) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(seconds):
            return await case

    return asyncio.run(bounded())


@dataclass
class Heard:
    """All that came of one utterance."""

    pcm: Pcm
    parts: list[AudioMessage]
    counters: Counters
    warnings: list[str]


async def hear(url: str, text: str, **options: Any) -> Heard:
    """Speak a text and listen to the end; come again when the machine is too busy."""
    while True:
        try:
            return await attempt(url, text, **options)
        except UtteranceFailed as failed:
            if failed.code != "overloaded":
                raise
            await asyncio.sleep(failed.retry_after or 1.0)


async def attempt(url: str, text: str, *, tokens: bool = False, **options: Any) -> Heard:
    """Speak a text, at once or token by token."""
    async with connect(url, on_event=lambda _: None, **options) as voice:
        utterance = voice.open()
        reading = asyncio.create_task(collect(utterance))
        pieces = [text[at : at + 4] for at in range(0, len(text), 4)] if tokens else [text]
        for piece in pieces:
            if not utterance.over:
                utterance.send(piece)
                await asyncio.sleep(0.005 if tokens else 0)
        utterance.end()
        parts = await reading
        await utterance.done()
        counters = utterance.counters
        assert counters is not None
        pcm = np.concatenate([part.pcm for part in parts])
        return Heard(pcm, parts, counters, [warning.code for warning in utterance.warnings])


async def collect(utterance: Any) -> list[AudioMessage]:
    return [part async for part in utterance]


# Opus for five of them: it is the same speech, and what the codec does to it is judged elsewhere.
@pytest.mark.parametrize(("codec", "count"), [("pcm_s16le", len(SENTENCES)), ("opus", 5)])
def test_sentences_are_understood(url: str, codec: str, count: int) -> None:
    places = asyncio.Semaphore(3)

    async def one(number: int) -> Heard:
        async with places:
            return await hear(
                url, SENTENCES[number], tokens=number % 2 == 1, codec=codec, playback_rate=2.0
            )

    async def all_of_them() -> list[Heard]:
        return await asyncio.gather(*[one(number) for number in range(count)])

    heard = run(all_of_them())
    # The recognizer works on half a minute at a time, whatever it is given.
    for first in range(0, count, 5):
        text = " ".join(SENTENCES[first : first + 5])
        pause = np.zeros(RATE // 4, np.float32)
        sound = [np.append(one.pcm, pause) for one in heard[first : first + 5]]
        understood = transcribe(np.concatenate(sound), RATE)
        assert word_error_rate(text, understood) <= 0.10, understood


def unchunked(runner: HibariRunner, text: str) -> Pcm:
    """The voice's own sound, each segment decoded in one piece."""
    runner.open(Request(utterance=1, client="", voice="heart"))
    runner.push_text(1, text, flush=False, end=True)
    segments, first, frames, ended = [], 0, 0, False
    while not ended:
        (result,) = runner.step([1])
        frames, ended = frames + result.frames, result.ended
        if frames and (result.boundary or ended):
            work = ChunkWork(1, 0, first, frames, Lane.URGENT, None, 0.0, 0.0)
            (pcm,) = runner.decode([work])
            assert isinstance(pcm, np.ndarray)
            segments.append(pcm)
            first, frames = first + frames, 0
    runner.close(1)
    return np.concatenate(segments)


@pytest.fixture(scope="module")
def voice() -> HibariRunner:
    return HibariRunner()


@pytest.mark.parametrize("tokens", [False, True])
def test_streamed_sound_is_the_unchunked_one(url: str, voice: HibariRunner, tokens: bool) -> None:
    heard = run(hear(url, LONG, tokens=tokens, codec="pcm_f32le", playback_rate=2.0))
    expected = unchunked(voice, LONG)
    assert len(heard.parts) > 10
    assert heard.pcm.shape == expected.shape
    assert np.abs(heard.pcm - expected).max() <= 1e-5


def test_opus_follows_the_sound_from_the_first_sample_to_the_last(
    url: str, voice: HibariRunner
) -> None:
    text = SENTENCES[0]
    heard = run(hear(url, text, codec="opus", playback_rate=2.0))
    expected = unchunked(voice, text)
    assert heard.pcm.shape == expected.shape
    spectrum = np.fft.rfft(heard.pcm, 2 * len(expected))
    spectrum *= np.conj(np.fft.rfft(expected, 2 * len(expected)))
    correlation = np.fft.irfft(spectrum)
    assert np.argmax(correlation) in (0, 1, 2 * len(expected) - 1)
    scale = float(np.linalg.norm(heard.pcm) * np.linalg.norm(expected))
    assert correlation.max() > 0.9 * scale


def seam_faults(pcm: Pcm, seams: list[int]) -> list[str]:
    """Where two messages meet: holes of zeros, and steps larger than the sound makes nearby."""
    faults = []
    for seam in seams:
        near = pcm[max(0, seam - 240) : seam + 240]
        at = min(seam, 240)
        steps = np.abs(np.diff(near))
        step, others = steps[at - 1], np.delete(steps, at - 1)
        if step > 1.5 * others.max() + 1e-3:
            faults.append(f"step of {step:.4f} at {seam}, at most {others.max():.4f} nearby")
        hole = near[max(0, at - 8) : at + 8]
        if np.abs(near).max() > 0.02 and np.count_nonzero(hole == 0.0) >= 8:
            faults.append(f"hole at {seam}")
    return faults


@pytest.mark.parametrize("codec", ["pcm_s16le", "opus"])
def test_no_seam_can_be_heard(url: str, codec: str) -> None:
    heard = run(hear(url, LONG, codec=codec, playback_rate=2.0))
    seams = [part.position for part in heard.parts if 0 < part.position < len(heard.pcm)]
    assert len(seams) > 10
    assert seam_faults(heard.pcm, seams) == []


def test_seam_faults_are_seen() -> None:
    tone = (0.3 * np.sin(np.arange(4800) / 9)).astype(np.float32)
    assert seam_faults(tone, [1000, 2400]) == []
    assert len(seam_faults(np.delete(tone, slice(1000, 1028)), [1000])) == 1
    assert len(seam_faults(np.insert(tone, 2400, np.zeros(64)).astype(np.float32), [2400])) >= 1


def test_words_are_those_of_the_text_in_order(url: str) -> None:
    heard = run(hear(url, LONG, playback_rate=2.0))
    words = [word for part in heard.parts for word in part.words]
    assert [LONG[word.char_start : word.char_end] for word in words] == [w.text for w in words]
    assert " ".join(word.text for word in words) == LONG
    positions = [word.position for word in words]
    assert positions == sorted(positions)
    for part in heard.parts:
        for word in part.words:
            assert part.position <= word.position < part.position + len(part.pcm)


def test_barge_in_tells_the_words_that_were_heard(url: str) -> None:
    async def case() -> None:
        async with connect(url) as voice:
            utterance = voice.speak(LONG)
            reading = asyncio.create_task(collect(utterance))
            while (counters := utterance.counters) is None or counters.heard < 1.5 * RATE:
                await asyncio.sleep(0.01)
            cancelled = await utterance.cancel()
            assert cancelled.heard_text + cancelled.unheard_text == LONG
            words = [word for part in await reading for word in part.words]
            begun = [word.text for word in words if word.position < cancelled.heard]
            assert cancelled.heard_text.split() == begun
            following = await voice.speak("Sorry, what did you say?").read()
            assert word_error_rate("Sorry, what did you say?", transcribe(following, RATE)) == 0

    run(case())


def test_what_cannot_be_said_is_named(url: str) -> None:
    heard = run(hear(url, "Hello 🙂 Привет my friend.", playback_rate=2.0))
    assert heard.warnings
    assert "friend" in transcribe(heard.pcm, RATE).lower()


def test_neighbour_of_misfits_hears_what_he_always_hears(url: str) -> None:
    """A client killed, one that never reads, one that sends garbage, a liar, and one that keeps
    interrupting. Chunks and batches fall differently beside them, which moves the sound by the
    rounding of float32 sums; no 16-bit sample's worth of it."""

    async def case() -> None:
        alone = await hear(url, LONG, codec="pcm_f32le")
        bad = [
            asyncio.create_task(misbehave(misfit, url))
            for misfit in (never_reads, sends_garbage, lies_that_it_is_dry, starts_and_cancels)
        ]
        killed = connect(url)
        victim = await killed.__aenter__()
        victim.speak(LONG)
        await asyncio.sleep(0.2)
        with kept_waiting() as kept:
            beside = asyncio.create_task(hear(url, LONG, codec="pcm_f32le"))
            await asyncio.sleep(0.5)
            await killed.__aexit__(None, None, None)
            heard = await beside
        for task in bad:
            task.cancel()
        await asyncio.gather(*bad, return_exceptions=True)
        assert heard.pcm.shape == alone.pcm.shape
        assert np.abs(heard.pcm - alone.pcm).max() <= 1e-5
        assert heard.counters.starved <= 0.1 + kept.in_turn

    run(case())
