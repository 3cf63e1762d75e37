# ruff: noqa: E402 - what follows needs torch
"""The runner on tiny random models: streaming text, batches, slots, ends, faults."""

import math
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

import runner_lab as lab
from playhead.engine.loop import Engine, EngineConfig
from playhead.engine.models.qwen3_tts.counts import Limits
from playhead.engine.models.qwen3_tts.prompt import Clone, PromptError
from playhead.engine.models.qwen3_tts.runner import Qwen3Runner
from playhead.engine.models.qwen3_tts.slots import NoSlot
from playhead.engine.policy import LaneLimits
from playhead.engine.types import AudioChunk, EngineEvent, Finish, Finished, Lane, Request
from runner_lab import FRAME, Heard, advance, chunk, request, say
from talker_kit import VECTOR, Spoken

TEXT = "The quick brown fox jumps over the lazy dog"
ICL = Spoken(6, vector=True, reference=(12, 5), seed=8)


def by_number(request: Request) -> int:
    return 6 + request.utterance


def clone(spoken: Spoken) -> Clone:
    vector = spoken.speaker_vector()
    assert vector is not None
    return Clone(vector, spoken.reference_codes(), spoken.reference_ids())


def test_info_names_model_and_voices(tmp_path: Path) -> None:
    info = lab.runner(tmp_path, frames=lambda _: 3).info
    assert info.name == "qwen3-tts-1b7-custom-voice-random"
    assert info.voices == ("eric", "ryan", "serena")
    assert (info.sample_rate, info.frame_samples, info.step_frames) == (lab.RATE, FRAME, 1)
    assert lab.runner(tmp_path).info.name == "qwen3-tts-1b7-custom-voice"


def test_random_weights_give_the_frames_asked_for(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda r: 5 + r.utterance)
    heard = say(model, 2, TEXT)
    assert heard.frames == 7
    assert len(heard.sound) == 7 * FRAME
    assert heard.last.ended
    assert heard.last.finish is Finish.COMPLETE


@pytest.mark.parametrize("whole_text", [True, False])
def test_a_stream_does_not_depend_on_its_batch_mates(tmp_path: Path, whole_text: bool) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 9, whole_text=whole_text)
    heard = {one: Heard() for one in (1, 2, 3)}
    for one, voice in zip(heard, ("ryan", "eric", "serena"), strict=True):
        model.open(request(one, voice, seed=one))
        model.push_text(one, TEXT[: 10 * one], flush=False, end=True)
    advance(model, heard)
    for one, voice in zip(heard, ("ryan", "eric", "serena"), strict=True):
        fresh = lab.runner(tmp_path, frames=lambda _: 9, whole_text=whole_text)
        alone = say(fresh, 7, TEXT[: 10 * one], voice, seed=one)
        assert np.abs(alone.sound - heard[one].sound).max() < 1e-5


def test_a_reused_slot_remembers_nothing(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, slots=1, frames=lambda _: 8)
    say(model, 1, "Somebody else said something long before", "eric", seed=5)
    second = say(model, 2, TEXT)
    fresh = say(lab.runner(tmp_path, slots=1, frames=lambda _: 8), 2, TEXT)
    assert np.array_equal(second.sound, fresh.sound)


def test_seeds_decide_and_equal_seeds_repeat(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 6)
    one, again, other = (say(model, n, TEXT, seed=s) for n, s in ((1, 4), (2, 4), (3, 5)))
    assert np.array_equal(one.sound, again.sound)
    assert not np.array_equal(one.sound, other.sound)


def test_text_that_arrives_in_pieces_sounds_like_text_known_before(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 25, whole_text=False)
    known = say(model, 1, TEXT)
    model.open(request(2))
    heard = {2: Heard()}
    for piece in (TEXT[:3], TEXT[3:12], TEXT[12:13], TEXT[13:31]):
        if model.push_text(2, piece, flush=False, end=False):
            advance(model, heard)
            assert heard[2].last.hungry
    assert 0 < heard[2].frames < known.frames
    assert model.push_text(2, TEXT[31:], flush=False, end=True)
    advance(model, heard)
    assert np.array_equal(known.sound, heard[2].sound)


def test_a_stream_without_text_waits_without_a_slot(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, slots=1, frames=lambda _: 2)
    model.open(request(1))
    assert not model.push_text(1, "Hel", flush=False, end=False)
    assert model.step([1])[0].hungry
    assert model._table.free == 1
    assert model.push_text(1, "", flush=True, end=False)
    assert model.step([1])[0].frames == 1


def test_a_hungry_stream_steps_again_only_with_text(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 50)
    model.open(request(1))
    assert model.push_text(1, "One two ", flush=False, end=False)
    heard = {1: Heard()}
    advance(model, heard)
    made = heard[1].frames
    result = model.step([1])[0]
    assert (result.frames, result.hungry) == (0, True)
    assert model.push_text(1, "three four ", flush=False, end=False)
    advance(model, heard)
    assert heard[1].frames > made


def test_an_empty_text_ends_at_once(tmp_path: Path) -> None:
    heard = say(lab.runner(tmp_path), 1, "  ")
    assert heard.last.ended
    assert heard.frames == 0
    assert heard.last.finish is Finish.COMPLETE


def test_the_end_code_ends_an_utterance(tmp_path: Path) -> None:
    model = lab.runner(tmp_path)
    head = model._loop.talker.head
    head[2150] = 0.0
    model._loop.talker.codec_table[2150] = 0.0
    model.open(request(1))
    model.push_text(1, TEXT, flush=False, end=True)
    assert model.step([1])[0].frames == 1
    head[:] = 0.0
    head[2150] = 50.0 * torch.sign(model._table.carry[0] + 1e-9)
    results = [model.step([1])[0] for _ in range(3)]
    ends = [result for result in results if result.ended]
    assert ends
    assert ends[0].frames == 0
    assert ends[0].finish is Finish.COMPLETE


@pytest.mark.parametrize(
    ("limits", "frames"),
    [
        (Limits(frames_base=4, frames_per_token=0), 4),
        (Limits(frames_base=2, frames_per_token=1), 2 + 12),
        (Limits(silence=0.0), 1),
        (Limits(repeats=0), 1),
    ],
    ids=["fixed", "per token", "silence", "repeats"],
)
def test_what_never_ends_is_ended(tmp_path: Path, limits: Limits, frames: int) -> None:
    model = lab.runner(tmp_path, limits=limits)
    heard = say(model, 1, TEXT)
    assert heard.frames == frames
    assert heard.last.ended
    assert heard.last.finish is Finish.LENGTH_BUDGET


def test_a_full_context_ends_an_utterance(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, positions=40, limits=Limits(frames_base=1000))
    heard = say(model, 1, TEXT)
    opening, text = 6 + 5, 12 + 2
    assert heard.last.finish is Finish.LENGTH_BUDGET
    assert heard.frames == 40 - (opening + text) + 1


def test_a_poisoned_stream_fails_alone_and_leaves_a_clean_slot(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, slots=2, frames=lambda _: 9)
    for one in (1, 2):
        model.open(request(one))
        model.push_text(one, TEXT, flush=False, end=True)
    model.step([1, 2])
    slot = model._streams[1].slot
    model._table.carry[slot] = math.nan
    broken, sound = model.step([1, 2])
    assert broken.error is not None
    assert sound.error is None
    assert sound.frames == 1
    model.close(1)
    model.close(2)
    after = say(model, 3, TEXT)
    fresh = say(lab.runner(tmp_path, slots=2, frames=lambda _: 9), 3, TEXT)
    assert np.array_equal(after.sound, fresh.sound)


def test_no_text_may_follow_the_end(tmp_path: Path) -> None:
    model = lab.runner(tmp_path)
    model.open(request(1))
    model.push_text(1, TEXT, flush=False, end=True)
    with pytest.raises(ValueError, match="after the end"):
        model.push_text(1, "more", flush=False, end=False)


def test_control_words_in_the_text_are_left_out_and_told(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 4)
    heard = say(model, 1, "The quick <|stop|>brown fox")
    plain = say(model, 2, "The quick  brown fox")
    warnings = [warning for result in heard.results for warning in result.warnings]
    assert [(w.code, w.text) for w in warnings] == [("unspeakable_text", "<|stop|>")]
    assert np.array_equal(heard.sound, plain.sound)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"voice": "nobody"}, "available are eric, ryan, serena"),
        ({"language": "klingon"}, "available are auto, chinese, english"),
        ({"speed": 1.5}, "speaks at 1.0"),
        ({"instruct": "word " * 200}, "at most 95 fit"),
    ],
)
def test_a_bad_request_is_refused_with_what_is_accepted(
    tmp_path: Path, options: dict[str, object], said: str
) -> None:
    model = lab.runner(tmp_path)
    with pytest.raises(PromptError, match=said):
        model.open(request(1, **options))  # type: ignore[arg-type]
    assert model._table.free == 4


def test_small_models_take_no_instruction(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="takes no instructions"):
        lab.runner(tmp_path, form="0b6").open(request(1, instruct="Whisper"))


def test_text_beyond_the_context_is_refused(tmp_path: Path) -> None:
    model = lab.runner(tmp_path)
    model.open(request(1))
    with pytest.raises(PromptError, match="the text takes"):
        model.push_text(1, "word " * 200, flush=False, end=True)
    model.open(request(2))
    model.push_text(2, "word " * 92, flush=False, end=True)
    error = model.step([2])[0].error
    assert error is not None
    assert "the prompt takes" in error
    assert model._table.free == 4


def test_more_streams_than_slots_are_refused(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, slots=1)
    model.open(request(1))
    with pytest.raises(ValueError, match="open already"):
        model.open(request(1))
    with pytest.raises(NoSlot, match="all 1 streams"):
        model.open(request(2))
    model.close(1)
    model.close(1)
    model.open(request(2))


def test_frames_are_decoded_in_order_and_only_once_made(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 4)
    model.open(request(1))
    model.push_text(1, TEXT, flush=False, end=True)
    model.step([1])
    faults = model.decode([chunk(1, 1, 1), chunk(1, 0, 2), chunk(9, 0, 1)])
    assert [type(fault) for fault in faults] == [ValueError, ValueError, KeyError]
    (pcm,) = model.decode([chunk(1, 0, 1)])
    assert isinstance(pcm, np.ndarray)
    assert pcm.dtype == np.float32


def test_chunk_sizes_do_not_change_the_sound(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=lambda _: 7)
    ones = say(model, 1, TEXT)
    model.open(request(2))
    model.push_text(2, TEXT, flush=False, end=True)
    for _ in range(7):
        model.step([2])
    parts = [model.decode([chunk(2, first, n)])[0] for first, n in ((0, 1), (1, 4), (5, 2))]
    assert np.abs(np.concatenate(parts) - ones.sound).max() < 1e-5  # type: ignore[arg-type]


@pytest.mark.parametrize("whole_text", [True, False])
def test_a_cloned_voice_goes_on_where_its_recording_stops(tmp_path: Path, whole_text: bool) -> None:
    made = clone(ICL)
    model = lab.runner(
        tmp_path, kind="base", clones={"me": made}, frames=lambda _: 6, whole_text=whole_text
    )
    model.open(request(1, "me"))
    model.push_text(1, TEXT, flush=False, end=True)
    heard = {1: Heard()}
    advance(model, heard)
    slot = model._streams[1].slot
    codes = torch.cat((torch.from_numpy(made.codes), model._table.codes[slot, :6]))
    arena = model._codec.decoder.arena(1)
    whole = replace(model._codec, arena=arena).decode(codes.t()[None], torch.tensor([0]))[0]
    assert np.abs(whole[-6 * FRAME :].numpy() - heard[1].sound).max() < 1e-5


def test_every_utterance_of_a_cloned_voice_goes_on_from_its_recording(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, kind="base", clones={"me": clone(ICL)}, frames=lambda _: 5)
    first, second = say(model, 1, TEXT, "me"), say(model, 2, TEXT, "me")
    assert np.array_equal(first.sound, second.sound)


def test_a_cloned_voice_waits_for_as_much_text_as_its_recording_is_long(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, kind="base", clones={"me": clone(ICL)}, frames=lambda _: 6)
    model.open(request(1, "me"))
    assert not model.push_text(1, "One two ", flush=False, end=False)
    assert model.push_text(1, "three four five six seven eight ", flush=False, end=False)
    assert model.step([1])[0].frames == 1


def test_a_voice_vector_alone_is_a_voice(tmp_path: Path) -> None:
    made = {"me": clone(VECTOR)}
    model = lab.runner(tmp_path, kind="base", clones=made, frames=lambda _: 3)
    assert say(model, 1, TEXT, "me").frames == 3


def speak_through_engine(model: Qwen3Runner, texts: dict[int, list[str]]) -> list[EngineEvent]:
    """All events of utterances whose text comes in pieces."""
    events: list[EngineEvent] = []
    done = threading.Event()

    def deliver(batch: list[EngineEvent]) -> None:
        events.extend(batch)
        if sum(isinstance(event, Finished) for event in events) == len(texts):
            done.set()

    lanes = LaneLimits(2, dict.fromkeys(Lane, 1), dict.fromkeys(Lane, 4))
    engine = Engine(model, EngineConfig(lanes), deliver)
    engine.start()
    try:
        for one, pieces in texts.items():
            engine.submit(request(one, reports=False))
            for piece in pieces:
                engine.push_text(one, piece)
            engine.push_text(one, "", end=True)
        assert done.wait(60)
    finally:
        engine.stop()
    return events


def test_the_engine_speaks_with_it(tmp_path: Path) -> None:
    model = lab.runner(tmp_path, frames=by_number, whole_text=False)
    texts = {one: [word + " " for word in TEXT.split()] for one in (1, 2, 3)}
    events = speak_through_engine(model, texts)
    for one in texts:
        chunks = [e for e in events if isinstance(e, AudioChunk) and e.utterance == one]
        (end,) = (e for e in events if isinstance(e, Finished) and e.utterance == one)
        assert (end.reason, end.samples) == (Finish.COMPLETE, (6 + one) * FRAME)
        assert [c.start for c in chunks] == list(np.cumsum([0, *(len(c.pcm) for c in chunks[:-1])]))
        alone = say(lab.runner(tmp_path, frames=by_number, whole_text=False), one, TEXT)
        assert np.abs(np.concatenate([c.pcm for c in chunks]) - alone.sound).max() < 1e-5
    assert model._table.free == 4
