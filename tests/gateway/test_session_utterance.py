"""An utterance's text goes to the engine in order, and its audio out without gaps."""

import math
from dataclasses import replace

from playhead.codecs.base import Encoded
from playhead.codecs.registry import Format
from playhead.engine.types import Finish, Lane, ListenerState, Request
from playhead.gateway.effects import Hold, OpenEncoder, PushText, Submit
from playhead.gateway.messages import SpokenWord
from playhead.gateway.session_playback import Playback
from playhead.gateway.session_types import Outcome
from playhead.gateway.session_utterance import Utterance
from session_kit import chunk, words

REQUEST = Request(utterance=7, client="carol", voice="ada")
FORMAT = Format("pcm_s16le", 8_000, 0, 0)


def utterance() -> Utterance:
    playback = Playback(rate=8_000, threshold=0.0, fresh=0.5, quantum=80)
    return Utterance(4, REQUEST, FORMAT, 24_000, playback)


def encoded(samples: int) -> Encoded:
    return Encoded(bytes(2 * samples), samples)


def test_text_before_submission_is_merged_between_flushes() -> None:
    made = utterance()
    made.push("a")
    made.push("b")
    made.push("", flush=True)
    made.push("c")
    assert made.push("", end=True) == []
    assert made.submit(None, 0.0) == [
        OpenEncoder(7, FORMAT),
        Submit(REQUEST),
        PushText(7, "ab", flush=True),
        PushText(7, "c", end=True),
    ]
    assert made.push("d") == [PushText(7, "d")]
    assert made.script.text == "abcd"


def test_submission_under_a_hold() -> None:
    made = utterance()
    effects = made.submit(ListenerState.PAUSED, 0.0)
    assert effects[2:] == [Hold(7, ListenerState.PAUSED)]
    assert made.hold(None, 1.0) == [Hold(7, None)]


def test_hold_reaches_the_playback() -> None:
    made = utterance()
    made.playback.on_sent(8_000, 0.0)
    made.hold(ListenerState.SUSPENDED, 0.25)
    assert made.playback.heard(9.0) == (2_000, True)
    made.hold(None, 10.0)
    assert made.playback.heard(10.5) == (6_000, True)


def test_audio_is_contiguous_in_wire_samples() -> None:
    made = utterance()
    made.note_chunk(chunk(7, 0, 4_800, words(("Hi", 2_400, 0))))
    first = made.next_audio(1, encoded(1_600), final=False, now=2.5)
    assert (first.seq, first.epoch, first.index, first.position, first.samples) == (
        1,
        4,
        0,
        0,
        1_600,
    )
    assert first.words == (SpokenWord(text="Hi", position=800, char_start=0, char_end=2),)
    assert (first.lane, first.slack, first.depth, first.sent) == (
        Lane.URGENT,
        250.0,
        500.0,
        2_500.0,
    )
    second = made.next_audio(2, encoded(400), final=True, now=2.6)
    assert (second.index, second.position, second.words, second.final) == (1, 1_600, (), True)
    assert made.final_sent
    assert made.playback.sent == 2_000


def test_words_wait_for_audio_that_carries_them() -> None:
    made = utterance()
    made.note_chunk(chunk(7, 0, 24, words(("a", 0, 0))))
    made.note_chunk(chunk(7, 24, 24, words(("b", 24, 2))))
    assert [word.text for word in made.next_audio(1, encoded(10), final=False, now=0.0).words] == [
        "a",
        "b",
    ]


def test_packets_are_given_only_where_there_are_some() -> None:
    made = utterance()
    assert made.next_audio(1, encoded(10), final=False, now=0.0).packets is None
    opus = Encoded(b"abc", 160, (1, 2))
    assert made.next_audio(2, opus, final=False, now=0.0).packets == (1, 2)


def test_numbers_that_json_cannot_hold_do_not_leave() -> None:
    made = utterance()
    odd = chunk(7, 0, 24)
    made.note_chunk(replace(odd, slack=math.inf, depth=math.nan))
    first = made.next_audio(1, encoded(8), final=False, now=0.0)
    assert (first.slack, first.depth) == (None, 0.0)
    made.note_chunk(replace(odd, slack=None, depth=1.0))
    second = made.next_audio(2, encoded(8), final=False, now=0.0)
    assert (second.slack, second.depth) == (None, 1_000.0)


def test_waiting_text_by_words_or_else_by_time() -> None:
    made = utterance()
    made.push("x" * 100)
    assert made.waiting_text(10.0) == 100
    made.next_audio(1, encoded(8_000), final=False, now=0.0)
    assert made.waiting_text(10.0) == 90
    made.note_chunk(chunk(7, 0, 24, words(("x" * 40, 0, 0))))
    assert made.waiting_text(10.0) == 60
    made.next_audio(2, encoded(160_000), final=False, now=0.0)
    assert made.waiting_text(10.0) == 0
    made.push("y")
    made.next_audio(3, encoded(0), final=True, now=0.0)
    assert made.waiting_text(0.0) == 0


def test_outcome() -> None:
    made = utterance()
    made.push("Hi 😀")
    made.note_chunk(chunk(7, 0, 2_400, words(("Hi", 0, 0))))
    made.next_audio(1, encoded(800), final=False, now=0.0)
    assert made.outcome(800) == Outcome(4, 800, "Hi", " 😀")  # more may come
    made.next_audio(2, encoded(0), final=True, now=0.0)
    assert made.outcome(800) == Outcome(4, 800, "Hi", " 😀")
    made.engine_ended(Finish.COMPLETE)
    assert not made.takes_text
    assert made.outcome(799) == Outcome(4, 799, "Hi", " 😀")
    assert made.outcome(800) == Outcome(4, 800, "Hi 😀", "")


def test_what_the_length_budget_cut_off_was_not_heard() -> None:
    made = utterance()
    made.push("Hi there")
    made.note_chunk(chunk(7, 0, 2_400, words(("Hi", 0, 0))))
    made.next_audio(1, encoded(800), final=True, now=0.0)
    made.engine_ended(Finish.LENGTH_BUDGET)
    assert made.outcome(800) == Outcome(4, 800, "Hi", " there")
