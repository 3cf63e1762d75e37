"""The CUDA lanes: graphs against call by call, alone against a crowd, bfloat16 against float32."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import gpu_kit as kit
import numpy as np
import pytest
import torch
from gpu_kit import Made, Report
from playhead.engine.models.qwen3_tts import cuda_runner
from playhead.engine.models.qwen3_tts.calls import Uncaptured
from playhead.engine.models.qwen3_tts.cuda_runner import Buckets, CudaRunner
from playhead.engine.models.qwen3_tts.embed import embed_prompts
from playhead.engine.models.qwen3_tts.loading import Setup, load_parts
from playhead.engine.models.qwen3_tts.prompt import Clone, PromptBuilder
from playhead.engine.models.qwen3_tts.runner import Options, Qwen3Runner
from playhead.engine.models.qwen3_tts.startup import Fallback, make_largest
from playhead.engine.types import ChunkWork, Finish, Lane, Pcm
from runner_lab import Heard, advance, request
from talker_kit import Spoken

pytestmark = pytest.mark.gpu
TEXTS = (
    "One two three",
    "A longer text, with a comma and a full stop. And then another sentence.",
    "Short",
    "Words upon words upon words " * 9,
)
FRAMES = 12
CLOSE = 1e-4
"""Largest difference of PCM in float32: graphs choose other algorithms than single calls."""
REFERENCE = Spoken(text=0, reference=(20, 12), vector=True, seed=3)


def speak(
    model: Qwen3Runner, numbers: Sequence[int], voice: str = "ryan", **more: object
) -> dict[int, Pcm]:
    """PCM of utterances whose text and seed go by their number, spoken together."""
    for number in numbers:
        model.open(request(number, voice, seed=number, **more))
        model.push_text(number, TEXTS[number % len(TEXTS)], flush=False, end=True)
    heard = {number: Heard() for number in numbers}
    advance(model, heard, most=400)
    for number in numbers:
        assert heard[number].last.ended, heard[number].last
        model.close(number)
    return {number: heard[number].sound for number in numbers}


def furthest(one: dict[int, Pcm], other: dict[int, Pcm]) -> float:
    """Largest difference of any sample; of utterances in both."""
    common = one.keys() & other.keys()
    assert common
    assert all(len(one[n]) == len(other[n]) for n in common)
    return max(float(np.abs(one[n] - other[n]).max()) for n in common)


def test_graphs_say_what_single_calls_say(tmp_path: Path, report: Report) -> None:
    made = Made(tmp_path, frames=lambda _: FRAMES)
    lanes = kit.tiny_runner(made)
    plain = Qwen3Runner(kit.tiny_parts(made), Options(frames=made.frames))
    numbers = list(range(1, 9))
    # One text of the four is longer than the longest captured prompt.
    difference = furthest(speak(lanes, numbers), speak(plain, numbers))
    report("largest difference of PCM", difference)
    assert difference < CLOSE


def test_kernels_say_what_plain_torch_says(tmp_path: Path, report: Report) -> None:
    """All the way through, greedy draws being nobody's choice of kernel."""
    fused = Qwen3Runner(kit.tiny_parts(Made(tmp_path)), Options(frames=lambda _: FRAMES))
    plain = Qwen3Runner(
        kit.tiny_parts(Made(tmp_path, fused=False)), Options(frames=lambda _: FRAMES)
    )
    builder = PromptBuilder(fused._parts.config, fused._builder.role)
    prompt = builder.full(fused._parts.voices.style("ryan"), list(range(20, 45)))
    hidden = []
    for model in (fused, plain):
        loop = model._loop
        with torch.inference_mode():
            rows, lengths = embed_prompts([prompt], loop.talker, loop.predictor)
            slot = torch.tensor([0], device=kit.DEVICE)
            ops = loop.talker.ops
            hidden.append(loop.talker.prefill(rows, lengths, slot, loop.table.cache, ops))
    report("relative error of hidden states", kit.error(*hidden))
    assert kit.error(*hidden) < 1e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_alone_as_among_sixteen(tmp_path: Path, dtype: torch.dtype, report: Report) -> None:
    """In float32 the same codes and PCM. In bfloat16 matrix products of other batch sizes round
    otherwise, and a draw at the edge may fall to the other side, after which all differs: the
    share of utterances that stay the same is reported, and first frames must mostly agree."""
    model = kit.tiny_runner(Made(tmp_path, dtype, frames=lambda _: FRAMES))
    numbers = list(range(1, 17))
    shuffled = numbers.copy()
    random.Random(1).shuffle(shuffled)
    alone = {n: speak(model, [n])[n] for n in numbers}
    worst, agree, first = 0.0, 0, 0
    for crowd in (speak(model, numbers), speak(model, shuffled)):
        differences = [float(np.abs(alone[n] - crowd[n]).max()) for n in numbers]
        frame = kit.runner_lab.FRAME
        starts = [float(np.abs(alone[n][:frame] - crowd[n][:frame]).max()) for n in numbers]
        worst = max(worst, *differences)
        agree += sum(difference < 0.05 for difference in differences)
        first += sum(start < 0.05 for start in starts)
    report("share of utterances that stay the same", agree / 32)
    report("share of first frames that stay the same", first / 32)
    if dtype == torch.float32:
        report("largest difference of PCM", worst)
        assert worst < CLOSE
    assert first >= 16


def test_nothing_runs_outside_graphs_after_warm_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mixed load: prompts of all lengths beside running streams, pieces of text, cloned voices
    with and without their recording, chunks of all sizes in both lanes. The product's own count."""
    monkeypatch.setattr(cuda_runner, "ROWS_PER_STEP", 64)
    vector = REFERENCE.speaker_vector()
    assert vector is not None
    clones = {
        "described": Clone(vector),
        "continued": Clone(vector, REFERENCE.reference_codes(), REFERENCE.reference_ids()),
    }
    bfloat = Made(tmp_path, torch.bfloat16, frames=lambda _: 21)
    before = Uncaptured()
    model = kit.tiny_runner(bfloat)
    seen = set(before.parts)
    base = kit.tiny_runner(replace(bfloat, kind="base", clones=clones))
    assert {"talker", "prompts", "predictor", "pieces", "codec"} <= seen, "all is called once"
    before = Uncaptured()
    speak(model, list(range(1, 1 + 16)))
    model.open(request(50))
    assert model.push_text(50, "One word, ", flush=False, end=False)
    heard = {50: Heard()}
    advance(model, heard)
    model.push_text(50, "and then the rest of it " * 20, flush=False, end=True)
    advance(model, heard)
    assert heard[50].last.ended
    model.close(50)
    for voice in clones:
        for numbers in ([1], [2, 3, 7]):
            for sound in speak(base, numbers, voice).values():
                assert len(sound) == 21 * kit.CODEC.frame_samples
    long_chunks(model)
    assert before.parts == {}
    # And a call that no graph holds is seen.
    with torch.inference_mode():
        slot = torch.tensor([0], device=kit.DEVICE)
        model._codec.decode(torch.zeros(1, 16, 1, dtype=torch.int64, device=kit.DEVICE), slot)
    assert before.parts == base.uncaptured.parts == {"codec": 1}
    assert base.uncaptured() == 1


def long_chunks(model: CudaRunner) -> None:
    """Chunks of 1 to 21 frames, in both lanes."""
    for lane in (Lane.URGENT, Lane.BACKGROUND):
        numbers = list(range(200, 206))
        for number in numbers:
            model.open(request(number, seed=number))
            model.push_text(number, "Some words", flush=False, end=True)
        frames = dict.fromkeys(numbers, 0)
        while min(frames.values()) < 21:
            for result in model.step([number for number in numbers if frames[number] < 21]):
                frames[result.utterance] += result.frames
        sizes = (1, 2, 3, 5, 7, 21)
        chunks = [
            ChunkWork(number, 0, 0, size, lane, None, 0.0, 0.0)
            for number, size in zip(numbers, sizes, strict=True)
        ]
        for size, pcm in zip(sizes, model.decode(chunks), strict=True):
            assert len(pcm) == size * kit.CODEC.frame_samples
        for number in numbers:
            model.close(number)


def test_a_cloned_voice_says_what_single_calls_say(tmp_path: Path) -> None:
    vector = REFERENCE.speaker_vector()
    assert vector is not None
    clones = {"me": Clone(vector, REFERENCE.reference_codes(), REFERENCE.reference_ids())}
    made = Made(tmp_path, kind="base", clones=clones, frames=lambda _: FRAMES)
    lanes = kit.tiny_runner(made)
    plain = Qwen3Runner(kit.tiny_parts(made), Options(frames=made.frames))
    for numbers in ([1], [2, 3]):
        assert furthest(speak(lanes, numbers, "me"), speak(plain, numbers, "me")) < CLOSE


def test_a_long_prompt_is_read_between_the_steps_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Running streams get a frame in every step while it is read, and it says the same as alone."""
    made = Made(tmp_path, frames=lambda _: FRAMES)
    model = kit.tiny_runner(made)
    long, others = 3, [1, 2]  # TEXTS: the last is longer than the longest prompt's graph
    alone = speak(model, [long, *others])
    monkeypatch.setattr(cuda_runner, "ROWS_PER_STEP", 64)
    heard = {}
    for number in (*others, long):
        model.open(request(number, seed=number))
        model.push_text(number, TEXTS[number % len(TEXTS)], flush=False, end=True)
        heard[number] = Heard()
    advance(model, {number: heard[number] for number in others}, most=1)
    steps = 0
    while not heard[long].frames:
        advance(model, heard, most=1)
        steps += 1
        assert all(heard[number].last.frames == 1 for number in others)
    assert steps == 2
    advance(model, heard, most=400)
    assert furthest({number: one.sound for number, one in heard.items()}, alone) < CLOSE


def test_an_utterance_given_up_while_its_prompt_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = kit.tiny_runner(Made(tmp_path, frames=lambda _: FRAMES))
    wanted = speak(model, [3])
    monkeypatch.setattr(cuda_runner, "ROWS_PER_STEP", 64)
    for number in (1, 3):
        model.open(request(number, seed=number))
        model.push_text(number, TEXTS[number % len(TEXTS)], flush=False, end=True)
    model.step([1])
    model.step([1, 3])
    assert model._streams[3].reading is not None
    model.close(3)
    model.close(1)
    assert model._table.free == model._table.slots
    assert furthest(speak(model, [3]), wanted) < CLOSE


def test_a_poisoned_stream_fails_alone_and_its_slot_is_good_again(tmp_path: Path) -> None:
    model = kit.tiny_runner(Made(tmp_path, frames=lambda _: FRAMES))
    wanted = speak(model, [1])[1]
    for number in (1, 2):
        model.open(request(number, seed=number))
        model.push_text(number, TEXTS[number % len(TEXTS)], flush=False, end=True)
    model.step([1, 2])
    torch.cuda.synchronize()
    slot = model._streams[2].slot
    with torch.inference_mode():
        model._table.carry[slot] = torch.nan
        model._table.cache.keys[:, slot] = torch.nan
    torch.cuda.synchronize()
    errors: dict[int, str | None] = {}
    heard = {1: Heard()}
    for _ in range(4):  # what the device had begun before is still good
        for result in model.step([n for n in (1, 2) if n not in errors]):
            if result.error:
                errors[result.utterance] = result.error
            elif result.utterance == 1:
                heard[1].results.append(result)
    assert errors == {2: "the model gave no numbers for this utterance"}
    model.close(2)
    for _ in range(FRAMES):
        if not heard[1].last.ended:
            heard[1].results += model.step([1])
    assert heard[1].last.ended
    model.close(1)
    assert np.abs(speak(model, [1])[1] - wanted).max() < CLOSE


def test_an_utterance_that_never_ends_gets_its_budget(tmp_path: Path) -> None:
    model = kit.tiny_runner(Made(tmp_path, torch.bfloat16))
    with torch.inference_mode():
        model._loop._allowed[model._parts.config.talker.ids.eos] = False
        torch.cuda.synchronize()
    model.open(request(1))
    model.push_text(1, "Short", flush=False, end=True)
    heard = {1: Heard()}
    advance(model, heard, most=300)
    assert heard[1].last.finish is Finish.LENGTH_BUDGET
    budget = model._options.limits.frames(model._streams[1].text_ids)
    assert 0 < heard[1].frames <= budget
    model.close(1)


@pytest.mark.parametrize("size", ["0.6b"])
def test_bfloat16_at_true_size(size: str, report: Report) -> None:
    """The published sizes with random weights: what bfloat16 and the fused kernels cost against
    float32 in plain torch."""
    hidden, pcm = [], []
    for dtype in ("float32", "bfloat16"):
        setup = Setup(
            slots=2,
            positions=128,
            device="cuda",
            dtype=dtype,
            random_seed=0,
            frames=lambda _: 4,
            compiled=False,
        )
        parts, _ = load_parts(size, setup)
        loop, codec = parts.loop, parts.codec
        builder = PromptBuilder(parts.config, (1, 2, 3))
        prompt = builder.full(parts.voices.style("ryan", "english"), list(range(1000, 1040)))
        with torch.inference_mode():
            rows, lengths = embed_prompts([prompt], loop.talker, loop.predictor)
            slot = torch.tensor([0], device=kit.DEVICE)
            hidden.append(loop.talker.prefill(rows, lengths, slot, loop.table.cache).float())
            generator = torch.Generator().manual_seed(1)
            codes = torch.randint(0, 2048, (1, 16, 40), generator=generator).to(kit.DEVICE)
            pcm.append(codec.decode(codes, slot, clamp=False))
        del parts, loop, codec
        torch.cuda.empty_cache()
    report("relative error of hidden states", kit.error(hidden[1], hidden[0]))
    report("relative error of PCM", kit.error(pcm[1], pcm[0]))
    assert kit.error(hidden[1], hidden[0]) < 0.1
    assert kit.error(pcm[1], pcm[0]) < 0.1


def test_too_little_memory_gives_fewer_graphs(tmp_path: Path) -> None:
    """A device that is full for all but the least."""
    parts = kit.tiny_parts(Made(tmp_path, torch.bfloat16, frames=lambda _: 3))
    tried: list[int] = []

    def make(plan: Buckets, last: bool) -> CudaRunner:
        tried.append(len(plan.lm.steps))
        if not last:
            torch.empty(1 << 50, device="cuda", dtype=torch.uint8)
        return CudaRunner(parts, Options(frames=lambda _: 3), plan)

    released: list[None] = []
    fallback = Fallback((torch.OutOfMemoryError,), lambda: released.append(None), lambda _: None)
    model = make_largest(make, kit.SMALL.plans(), fallback)
    assert (len(tried), tried[-1], len(released)) == (3, 1, 2)
    assert len(speak(model, [1, 2, 3])) == 3
