"""What an engine and its model in another process say arrives as it left."""

import numpy as np
import pytest
from playhead.engine.answers import Answer
from playhead.engine.policy import LaneLimits
from playhead.engine.remote import runner_batches as batches
from playhead.engine.remote import runner_wire as wire
from playhead.engine.remote.wire import MOST, Frames, WireError
from playhead.engine.types import (
    ChunkWork,
    Finish,
    Lane,
    ModelCounts,
    ModelInfo,
    Pcm,
    Request,
    RunnerDead,
    StepResult,
    TextWarning,
    Word,
)

INFO = ModelInfo("model", ("alto",), 24_000, 1_920, (1, 2, 4), 2, languages=("auto", "de"))
LIMITS = LaneLimits(3, dict.fromkeys(Lane, 1), {Lane.LM: 512, Lane.URGENT: 64, Lane.BACKGROUND: 64})
FROM_ENGINE = [
    wire.Begin(b"\x00any"),
    wire.Open(Request(7, "client", "alto", seed=2**63 - 1, instruct="leise", account="a")),
    wire.Text(7, "Grüße 🎈\x00", True, False),
    wire.Close(7),
]
FROM_MODEL = [
    wire.Loading("weights", 0.5),
    wire.Refused("there is no device"),
    wire.Ready(INFO, LIMITS),
    wire.Answered(
        [Answer(7, steppable=True), Answer(8, code="bad_value", message="no"), Answer(9, end=True)],
        12,
    ),
]
MOST_FRAMES = 300
CHUNKS = [
    ChunkWork(7, 3, 12, 8, Lane.URGENT, None, 0.5, 12.25),
    ChunkWork(9, 0, 0, 1, Lane.BACKGROUND, -0.25, 0.0, 13.5),
]


def control(frame: bytes) -> bytes:
    (body,) = Frames().feed(frame)
    return body


def lane(pieces: list[memoryview]) -> tuple[bytes, Pcm]:
    """Body and sound of what was sent, as one stream of bytes."""
    sent = b"".join(pieces)
    size, sound = wire.lengths(sent[: wire.HEAD.size])
    body = sent[wire.HEAD.size : wire.HEAD.size + size]
    left = sent[wire.HEAD.size + size :]
    assert len(left) == sound
    return body, np.frombuffer(left, np.float32)


def plain(utterance: int, frames: int) -> StepResult:
    return StepResult(utterance, frames, boundary=False, hungry=False, ended=False)


def test_what_the_engine_says_arrives_as_it_was() -> None:
    assert wire.from_engine(control(wire.encode(FROM_ENGINE))) == FROM_ENGINE


def test_what_the_model_says_arrives_as_it_was() -> None:
    assert wire.from_model(control(wire.encode(FROM_MODEL))) == FROM_MODEL


@pytest.mark.parametrize("message", [wire.Step([7, 2**62]), wire.Decode(CHUNKS)])
def test_work_arrives_as_it_was(message: wire.Work) -> None:
    body, sound = lane(wire.letter(message))
    assert wire.work(body) == message
    assert not len(sound)


def over(utterances: list[int], results: list[StepResult]) -> list[StepResult]:
    body, _ = lane(
        wire.letter(
            batches.StepAnswers(MOST_FRAMES).pack(utterances, results, ModelCounts(3, 48, 2))
        )
    )
    answer = wire.done(body)
    assert isinstance(answer, wire.Stepped)
    assert answer.counts == ModelCounts(3, 48, 2)
    there = batches.StepResults()
    return there.unpack(utterances, answer)


@pytest.mark.parametrize(
    "result",
    [
        plain(5, 0),
        plain(5, 2),
        plain(5, 15),
        plain(5, 16),
        plain(5, 300),
        StepResult(5, 1, boundary=True, hungry=False, ended=False),
        StepResult(5, 0, boundary=False, hungry=True, ended=False),
        StepResult(5, 2, False, False, True, finish=Finish.LENGTH_BUDGET),
        StepResult(5, 1, False, False, False, words=(Word("Grüße", 0, 0, 5),)),
        StepResult(5, 1, False, False, False, warnings=(TextWarning(5, "code", "why", "☃"),)),
        StepResult(5, 0, False, False, False, error=""),
        StepResult(5, 0, False, False, False, waiting=True),
    ],
)
def test_results_of_steps_arrive_as_they_were(result: StepResult) -> None:
    assert over([4, 5, 6], [plain(4, 1), result, plain(6, 2)]) == [
        plain(4, 1),
        result,
        plain(6, 2),
    ]


def test_batches_in_which_all_say_the_same_arrive() -> None:
    ended = StepResult(5, 1, boundary=False, hungry=False, ended=True)
    for results in ([], [plain(4, 2), plain(5, 2)], [plain(4, 2), ended], [ended]):
        assert over([result.utterance for result in results], results) == results


def test_a_result_that_tells_frames_alone_is_made_once() -> None:
    there = batches.StepResults()
    answer = batches.StepAnswers(MOST_FRAMES).pack([5], [plain(5, 2)], 0)
    (first,) = there.unpack([5], answer)
    assert there.unpack([5], answer)[0] is first
    assert there.unpack([5], batches.StepAnswers(MOST_FRAMES).pack([5], [plain(5, 1)], 0)) == [
        plain(5, 1)
    ]
    there.close(5)
    there.close(5)
    (again,) = there.unpack([5], answer)
    assert again is not first


@pytest.mark.parametrize("answers", [[], [4], [5, 4], [4, 5, 6]])
def test_answers_of_others_break_the_batch_where_they_are_made(answers: list[int]) -> None:
    with pytest.raises(RuntimeError, match="not those of the batch"):
        batches.StepAnswers(MOST_FRAMES).pack([4, 5], [plain(number, 1) for number in answers], 0)


def test_what_a_runner_gives_again_is_looked_at_once() -> None:
    here = batches.StepAnswers(MOST_FRAMES)
    result = plain(5, 2)
    first = here.pack([5], [result], 0)
    object.__setattr__(result, "utterance", 6)  # nobody does: it shows that it is not read
    assert here.pack([5], [result], 0) == first
    here.close(5)
    here.close(5)
    with pytest.raises(RuntimeError, match="not those of the batch"):
        here.pack([5], [result], 0)


def test_answers_that_do_not_fit_are_no_answers() -> None:
    there = batches.StepResults()
    with pytest.raises(WireError, match="2 answers to 1 streams"):
        there.unpack([5], wire.Stepped(b"\x01\x01", {}, 0))


def test_sound_arrives_sample_by_sample_and_faults_in_their_places() -> None:
    noise = np.random.default_rng(0).normal(size=600).astype(np.float32)
    results: list[Pcm | BaseException] = [noise[:100], ValueError("why"), noise[100::2], noise[:0]]
    body, sound = lane(wire.letter(*batches.decoded(results)))
    answer = wire.done(body)
    assert isinstance(answer, wire.Decoded)
    first, fault, second, none = batches.shared_out(answer, sound, 4)
    np.testing.assert_array_equal(first, noise[:100])
    np.testing.assert_array_equal(second, noise[100::2])
    assert not isinstance(none, BaseException)
    assert len(none) == 0
    assert (type(fault).__name__, str(fault)) == ("ValueError", "why")


@pytest.mark.parametrize(("samples", "chunks"), [([3], 1), ([1, 1], 1), ([2], 2), ([], 0)])
def test_sound_that_does_not_fit_is_no_sound(samples: list[int], chunks: int) -> None:
    with pytest.raises(WireError, match="2 samples for"):
        batches.shared_out(wire.Decoded(samples, {}), np.zeros(2, np.float32), chunks)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(RunnerDead("the device is gone"), RunnerDead), (RuntimeError("r"), RuntimeError)],
)
def test_the_end_of_the_device_is_told_apart(error: Exception, kind: type[Exception]) -> None:
    (piece,) = wire.letter(wire.Failed(batches.fault_of(error)))
    answer = wire.done(lane([piece])[0])
    assert isinstance(answer, wire.Failed)
    made = batches.raised(answer.fault)
    assert isinstance(made, kind)
    assert isinstance(made, RunnerDead) == (kind is RunnerDead)
    assert (type(made).__name__, str(made)) == (type(error).__name__, str(error))


@pytest.mark.parametrize("frame", [b"", b"\xc1", b"\x91\x91\x63", b"\xa3abc"])
def test_what_is_no_message_is_said_to_be_none(frame: bytes) -> None:
    for read in (wire.from_engine, wire.from_model, wire.work, wire.done):
        with pytest.raises(WireError, match="no message"):
            read(frame)


@pytest.mark.parametrize(("body", "sound"), [(MOST + 1, 0), (1, 3)])
def test_lengths_that_none_has_are_refused(body: int, sound: int) -> None:
    with pytest.raises(WireError, match="there is none such"):
        wire.lengths(wire.HEAD.pack(body, sound))
