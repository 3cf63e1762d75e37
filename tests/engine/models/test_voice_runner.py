import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playhead.engine.models.hibari.runner import HibariRunner
from playhead.engine.models.hibari.spectra import SpectrumDecoder
from playhead.engine.types import Pcm
from voice_kit import Speech, pcm_of, request, speak, work

TEXT = "Well, I think so, Dr. Smith. It is $5.99 now. Go?"
FRAME = 300
Say = Callable[..., Speech]


def loudest_per_frame(pcm: Pcm) -> Pcm:
    peaks: Pcm = np.abs(pcm).reshape(-1, FRAME).max(axis=1)
    return peaks


def test_any_chunking_gives_the_same_samples(say: Say) -> None:
    whole = say(TEXT, chunks=(10_000,))
    assert len(whole.boundaries) == 4
    chance = random.Random(1)
    for sizes in ((1, 2), (8, 16, 32), [chance.choice([1, 2, 3, 5, 8, 13, 32]) for _ in range(50)]):
        chunked = say(TEXT, chunks=sizes)
        assert len(chunked.pcm) == len(whole.pcm)
        assert np.abs(chunked.pcm - whole.pcm).max() <= 1e-5
        assert chunked.words == whole.words


def test_the_same_request_gives_the_same_bits_and_another_seed_does_not(say: Say) -> None:
    first, again, other = (say("Hello again.", seed=seed).pcm for seed in (7, 7, 8))
    assert np.array_equal(first, again)
    assert len(first) == len(other)
    assert not np.array_equal(first, other)
    assert np.abs(first - other).max() < 0.1  # the seed shapes noise, it does not change the words


def test_deltas_do_not_change_the_audio(say: Say) -> None:
    assert np.array_equal(say(TEXT).pcm, say(list(TEXT)).pcm)


def test_batch_mates_do_not_change_a_sample(runner: HibariRunner) -> None:
    texts = ["The first one speaks.", "And the second, too, speaks.", "Third."]
    alone = [speak(runner, text, chunks=(8,)).pcm[: 24 * FRAME] for text in texts]
    asked = [request() for _ in texts]
    for one, text in zip(asked, texts, strict=True):
        runner.open(one)
        runner.push_text(one.utterance, text, flush=False, end=True)
    results = runner.step([one.utterance for one in asked])
    assert [result.utterance for result in results] == [one.utterance for one in asked]
    parts: list[list[Pcm]] = [[], [], []]
    for first in (0, 8, 16):
        decoded = runner.decode([work(one.utterance, first, 8) for one in asked])
        for part, result in zip(parts, decoded, strict=True):
            part.append(pcm_of(result))
    for part, expected in zip(parts, alone, strict=True):
        assert np.array_equal(np.concatenate(part), expected)
    for one in asked:
        runner.close(one.utterance)


@pytest.mark.parametrize(
    "text",
    [
        "Hello, how are you?",
        "Thank you.",
        "She sells sea shells.",
        "Five past nine.",
        "Yes.",
    ],
)
def test_the_first_sound_comes_at_once(say: Say, text: str) -> None:
    peaks = loudest_per_frame(say(text).pcm)
    audible = np.flatnonzero(peaks > 0.02 * peaks.max())
    assert audible[0] * 12.5 <= 50.0  # ms; a weak consonant grows for that long
    assert (len(peaks) - 1 - audible[-1]) * 12.5 <= 300.0


def test_most_first_sounds_come_within_30_ms(say: Say) -> None:
    leads = []
    for text in (
        "Hello.",
        "Good day.",
        "My name is Ann.",
        "What now?",
        "It never stalls.",
        "Please wait.",
        "Do it.",
    ):
        peaks = loudest_per_frame(say(text).pcm)
        leads.append(int(np.argmax(peaks > 0.02 * peaks.max())) * 12.5)
    assert sorted(leads)[len(leads) // 2] <= 30.0


def test_pauses_follow_the_punctuation(say: Say) -> None:
    def longest_pause(text: str) -> float:
        quiet = loudest_per_frame(say(text).pcm) < 0.006
        runs = "".join("q" if frame else " " for frame in quiet).strip().split()
        return max(map(len, runs)) * 12.5

    sentence = longest_pause("We went to the sea. There was nobody.")
    clause = longest_pause("We went to the sea, there was nobody.")
    assert 200 <= sentence <= 500
    assert clause < sentence


def test_no_click_and_no_gap_at_seams(say: Say) -> None:
    speech = say(TEXT, chunks=(8,))
    steps = np.abs(np.diff(speech.pcm))
    seams = np.arange(8 * FRAME, len(speech.pcm), 8 * FRAME)
    assert steps[seams - 1].max() <= steps.max()
    for boundary in speech.boundaries[:-1]:
        assert steps[boundary - 1] < 0.01  # faded out, faded in
    longest_zero_run = max(
        map(len, "".join("0" if value == 0 else " " for value in speech.pcm).split()), default=0
    )
    assert longest_zero_run < 24  # 1 ms


def test_words_are_placed_where_they_are_heard(say: Say) -> None:
    speech = say("Stop. Now.")
    assert [word.text for word in speech.words] == ["Stop.", "Now."]
    assert speech.words[0].start < 0.1 * 24000
    assert speech.boundaries[0] <= speech.words[1].start < speech.boundaries[0] + 0.3 * 24000
    assert [(word.char_start, word.char_end) for word in speech.words] == [(0, 5), (6, 10)]


@pytest.mark.parametrize("text", [
    TEXT, "😀 hi 你好 there 😀", "one 😀. 你好. two", "...", "- a - b -", "\ud800 x",
    "x " + "9" * 40, "привет π", "see https://a.b/c (ok)",
])  # fmt: skip
def test_every_word_appears_once_in_order_with_its_place(say: Say, text: str) -> None:
    speech = say(text)
    assert [word.text for word in speech.words] == text.split()
    assert all(text[word.char_start : word.char_end] == word.text for word in speech.words)
    starts = [word.start for word in speech.words]
    assert starts == sorted(starts)
    assert all(0 <= start < max(1, len(speech.pcm)) for start in starts)
    assert all(start % FRAME == 0 for start in starts)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.text(min_size=1, max_size=12)
        | st.sampled_from(
            [
                "$5",
                "3:30 pm",
                "Dr.",
                "a",
                "the",
                "U.S.",
                "1/2",
                "-",
                "No. 5",
                "😀",
                "IV",
                "x" * 300,
            ],
        ),
        max_size=6,
    ).map(" ".join)
)
def test_whatever_is_typed_is_spoken_or_named(runner: HibariRunner, text: str) -> None:
    speech = speak(runner, text)
    assert "".join(word.text for word in speech.words) == "".join(text.split())
    assert len(speech.pcm) or speech.warnings or not text.strip()
    assert np.isfinite(speech.pcm).all()
    assert np.abs(speech.pcm).max(initial=0) <= 1.0


def test_nothing_but_emoji_ends_with_a_warning_and_no_frames(runner: HibariRunner) -> None:
    speech = speak(runner, "😀😀 🎉")
    assert len(speech.pcm) == 0
    assert [warning.code for warning in speech.warnings] == ["unspeakable_text"]
    assert speech.warnings[0].text == "😀😀 🎉"
    assert [word.start for word in speech.words] == [0, 0]


def test_punctuation_alone_is_named_too(say: Say) -> None:
    assert [warning.code for warning in say("?!").warnings] == ["unspeakable_text"]


def test_a_segment_that_comes_out_silent_is_passed_over(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead.engine.models.hibari.utterance.audible_span", lambda *_: (0, 0))
    speech = say("Hush.")
    assert (len(speech.pcm), [word.text for word in speech.words]) == (0, ["Hush."])
    assert [warning.code for warning in speech.warnings] == ["unspeakable_text"]


def test_no_text_at_all_ends_quietly(say: Say) -> None:
    speech = say(" \n ")
    assert (len(speech.pcm), speech.words, speech.warnings) == (0, [], [])


def test_hungry_until_more_text_or_the_end(runner: HibariRunner) -> None:
    asked = request()
    runner.open(asked)
    assert not runner.push_text(asked.utterance, "Hello", flush=False, end=False)
    (result,) = runner.step([asked.utterance])
    assert (result.frames, result.hungry, result.ended) == (0, True, False)
    assert runner.push_text(asked.utterance, "", flush=True, end=False)
    (result,) = runner.step([asked.utterance])
    assert result.frames
    assert (result.boundary, result.hungry, result.ended) == (True, True, False)
    assert runner.push_text(asked.utterance, "", flush=False, end=True)
    (result,) = runner.step([asked.utterance])
    assert (result.frames, result.hungry, result.ended) == (0, False, True)
    runner.close(asked.utterance)


def test_steps_are_bounded_and_the_last_of_a_segment_is_a_boundary(runner: HibariRunner) -> None:
    asked = request()
    runner.open(asked)
    runner.push_text(
        asked.utterance, "This one sentence is long enough for a few steps.", flush=False, end=True
    )
    results = [runner.step([asked.utterance])[0]]
    while not results[-1].ended:
        results += runner.step([asked.utterance])
    assert [result.frames for result in results[:-1]] == [64] * (len(results) - 1)
    assert [result.boundary for result in results] == [False] * (len(results) - 1) + [True]
    runner.close(asked.utterance)


def test_speed_changes_the_length(say: Say) -> None:
    slow, fast = (len(say("Hello there, everybody.", speed=speed).pcm) for speed in (0.5, 2.0))
    assert slow > 2.5 * fast


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 0.49}, r"0\.5 \(slow\) to 2\.0"),
        ({"speed": 2.01}, "out of range"),
        ({"speed": float("nan")}, "out of range"),
    ],
)
def test_a_wrong_speed_is_refused(
    runner: HibariRunner, options: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        runner.open(request(**options))


def test_a_wrong_voice_or_number_is_refused(runner: HibariRunner) -> None:
    asked = request()
    with pytest.raises(ValueError, match="available is 'heart'"):
        runner.open(type(asked)(asked.utterance, "c", "nobody"))
    runner.open(asked)
    with pytest.raises(ValueError, match="open already"):
        runner.open(asked)
    runner.close(asked.utterance)
    runner.close(asked.utterance)


def test_one_bad_stream_fails_alone(runner: HibariRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = request(), request()
    for one, text in ((good, "I am fine."), (bad, "I am broken.")):
        runner.open(one)
        runner.push_text(one.utterance, text, flush=False, end=True)
    plan = runner._voice.frontend.plan

    def faulty(text: str, offset: int) -> object:
        if "broken" in text:
            raise IndexError("no such phoneme")
        return plan(text, offset)

    monkeypatch.setattr(runner._voice.frontend, "plan", faulty)
    fine, failed = runner.step([good.utterance, bad.utterance])
    assert fine.frames
    assert failed.error == "IndexError: no such phoneme"
    results = runner.decode(
        [
            work(bad.utterance, 0, 8),
            work(good.utterance, 0, 8),
            work(10**9, 0, 8),
            work(good.utterance, 99, 8),
        ]
    )
    assert [type(result) for result in results] == [ValueError, np.ndarray, KeyError, ValueError]
    (late,) = runner.decode([work(good.utterance, 8, 10_000)])
    assert isinstance(late, ValueError)
    for one in (good, bad):
        runner.close(one.utterance)


def test_a_failing_decoder_is_reported_per_stream(
    runner: HibariRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("out of luck")

    asked = request()
    runner.open(asked)
    runner.push_text(asked.utterance, "Hello.", flush=False, end=True)
    runner.step([asked.utterance])
    monkeypatch.setattr(SpectrumDecoder, "advance", broken)
    (result,) = runner.decode([work(asked.utterance, 0, 8)])
    assert isinstance(result, RuntimeError)
    runner.close(asked.utterance)


def test_a_closed_utterance_leaves_nothing_behind(runner: HibariRunner) -> None:
    asked = request()
    runner.open(asked)
    runner.push_text(asked.utterance, TEXT, flush=False, end=True)
    runner.step([asked.utterance])
    runner.decode([work(asked.utterance, 0, 8)])
    runner.close(asked.utterance)
    assert asked.utterance not in runner._utterances
