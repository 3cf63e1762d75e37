"""Order is kept, threads do not mix, and a broken encoder ends one utterance."""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from machine import PATIENCE
from playhead.codecs.base import Encoded, Pcm
from playhead.engine.types import AudioChunk, EngineEvent, Finish, Finished, Lane, TextWarning
from playhead.gateway import encoding
from playhead.gateway.encoder_threads import EncoderThreads
from playhead.gateway.encoding import EncodedAudio, EncoderFailed, EncoderPipe, PipeOutput


class Recorder:
    """An encoder that notes what it sees, and that it is never entered twice."""

    pre_skip = 0

    def __init__(self, work: Callable[[], None] = lambda: None) -> None:
        self.seen: list[int] = []
        self.threads: set[int] = set()
        self._inside = threading.Lock()
        self._work = work

    def encode(self, pcm: Pcm) -> Encoded:
        assert self._inside.acquire(blocking=False)
        try:
            self._work()
            self.threads.add(threading.get_ident())
            self.seen.append(int(pcm[0]))
            return Encoded(pcm.tobytes(), len(pcm))
        finally:
            self._inside.release()

    def flush(self) -> Encoded:
        self.seen.append(-1)
        return Encoded(b"tail", 1)


def chunk(index: int, utterance: int = 1) -> AudioChunk:
    pcm = np.full(4, index, np.float32)
    return AudioChunk(utterance, index, index * 4, pcm, (), Lane.URGENT, None, 0.0)


def finished(reason: Finish = Finish.COMPLETE) -> Finished:
    return Finished(1, reason, 0)


def run(
    encoder: Recorder, events: Sequence[EngineEvent], threads: EncoderThreads | None
) -> list[PipeOutput]:
    """Push all events, wait for the last one's output."""
    outputs: list[PipeOutput] = []

    async def main() -> None:
        done = asyncio.Event()

        def emit(utterance: int, batch: Sequence[PipeOutput]) -> None:
            assert utterance == 1
            outputs.extend(batch)
            if isinstance(outputs[-1], Finished | EncoderFailed):
                done.set()

        pipe = EncoderPipe(1, encoder, emit, threads=threads)
        for event in events:
            pipe.push(event)
            await asyncio.sleep(0)
        await asyncio.wait_for(done.wait(), PATIENCE)

    asyncio.run(main())
    return outputs


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_order_is_kept(threads: int) -> None:
    jitter = random.Random(threads)
    encoder = Recorder(lambda: time.sleep(jitter.random() / 1000))
    warning = TextWarning(1, "unspeakable_text", "skipped", "☃")
    events = [*map(chunk, range(20)), warning, *map(chunk, range(20, 40)), finished()]
    pool = EncoderThreads(threads) if threads else None
    outputs = run(encoder, events, pool)
    assert encoder.seen == [*range(40), -1]
    assert outputs.index(warning) == 20
    audio = [output for output in outputs if isinstance(output, EncodedAudio)]
    assert [output.chunk.index for output in audio[:-1] if output.chunk] == list(range(40))
    assert [output.final for output in audio] == [False] * 40 + [True]
    assert audio[-1] == EncodedAudio(Encoded(b"tail", 1), None, final=True)
    assert outputs[-1] == finished()
    own_thread = threading.get_ident() in encoder.threads
    assert own_thread is (pool is None)


@pytest.mark.parametrize("reason", [Finish.CANCELLED, Finish.FAILED])
def test_no_flush_when_speech_was_cut(reason: Finish) -> None:
    encoder = Recorder()
    assert run(encoder, [finished(reason)], None) == [finished(reason)]
    assert encoder.seen == []


def test_length_budget_is_flushed_too() -> None:
    encoder = Recorder()
    run(encoder, [finished(Finish.LENGTH_BUDGET)], None)
    assert encoder.seen == [-1]


@pytest.mark.parametrize("threads", [0, 1])
def test_a_broken_encoder_ends_its_utterance_once(
    threads: int, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Recorder):
        def encode(self, pcm: Pcm) -> Encoded:
            if pcm[0] == 2:
                raise OSError("codec gone")
            return super().encode(pcm)

    pool = EncoderThreads(threads) if threads else None
    outputs = run(Broken(), [*map(chunk, range(5)), finished()], pool)
    kinds = [type(output) for output in outputs]
    assert kinds == [EncodedAudio, EncodedAudio, EncoderFailed]
    assert outputs[-1] == EncoderFailed(1, "OSError")
    assert "codec gone" in caplog.text


def test_nothing_comes_after_close() -> None:
    outputs: list[PipeOutput] = []
    gate = threading.Event()

    async def main() -> None:
        encoder = Recorder(lambda: gate.wait(PATIENCE) and None)
        with EncoderThreads(1) as threads:
            pipe = EncoderPipe(1, encoder, lambda _, o: outputs.extend(o), threads=threads)
            pipe.push(chunk(0))
            pipe.push(chunk(1))
            pipe.close()
            gate.set()
            pipe.push(chunk(2))
            pipe.close()
        await asyncio.sleep(0.01)
        assert encoder.seen == [0]  # what ran, ended; what waited, never began

    asyncio.run(main())
    assert outputs == []


def test_close_while_emitting_stops_the_rest() -> None:
    """A consumer may close its pipe from inside ``emit``; queued work must not start."""

    async def main() -> None:
        pipe: EncoderPipe
        encoder = Recorder()
        with EncoderThreads(1) as threads:
            closed = asyncio.Event()

            def emit(_utterance: int, _outputs: Sequence[PipeOutput]) -> None:
                pipe.close()
                closed.set()

            pipe = EncoderPipe(1, encoder, emit, threads=threads)
            pipe.push(chunk(0))
            pipe.push(chunk(1))
            await asyncio.wait_for(closed.wait(), PATIENCE)
            await asyncio.sleep(0.01)
        assert encoder.seen == [0]

    asyncio.run(main())


def test_an_encoder_that_does_not_come_back_ends_its_utterance_and_gives_its_place_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(encoding, "LOOK", 0.1)
    gate = threading.Event()
    outputs: dict[int, list[PipeOutput]] = {1: [], 2: [], 3: []}

    async def main() -> None:
        threads = EncoderThreads(1)
        pipes = [
            EncoderPipe(number, encoder, lambda n, o: outputs[n].extend(o), threads=threads)
            for number, encoder in (
                (1, Recorder(lambda: gate.wait(PATIENCE) and None)),
                (2, Recorder()),
                (3, Recorder(lambda: gate.wait(PATIENCE) and None)),
            )
        ]
        pipes[0].push(chunk(0))
        pipes[1].push(chunk(0))  # waits for the only thread, however long that takes
        pipes[2].push(chunk(0))
        pipes[2].close()  # its listener has gone, and the thread is needed all the same
        async with asyncio.timeout(PATIENCE):
            while not outputs[2]:
                await asyncio.sleep(0.005)
        pipes[0].push(chunk(1))
        pipes[1].push(chunk(1))
        async with asyncio.timeout(PATIENCE):
            while len(outputs[2]) < 2:
                await asyncio.sleep(0.005)
        gate.set()  # it comes back after all, and nobody hears of it
        threads.shutdown(wait=True)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert outputs[1] == [EncoderFailed(1, "it does not come back")]
    assert all(isinstance(output, EncodedAudio) for output in outputs[2])
    assert outputs[3] == []


def test_an_encoder_that_is_slow_but_comes_is_none_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each job is looked at anew: many slow ones are not one that hangs."""
    monkeypatch.setattr(encoding, "LOOK", 0.02)
    monkeypatch.setattr(encoding, "LOOKS", 1_000)
    encoder = Recorder(lambda: time.sleep(0.05))
    outputs = run(encoder, [*map(chunk, range(4)), finished()], EncoderThreads(2))
    assert encoder.seen == [0, 1, 2, 3, -1]
    assert isinstance(outputs[-1], Finished)
