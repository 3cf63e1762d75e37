"""What builders of voice agents report about playback in public, the odd-numbered half: each with
the behaviour that is right. Where a test elsewhere shows it already, it is named here and looked
up, so that it cannot vanish unnoticed.
"""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from dialect_kit import Call, facts, opening
from doubles import FRAME, FRAME_SECONDS, Rig, machine, report, request
from harness import eventually, gateway
from playhead.client.player import Player
from playhead.client.track import PlayerConfig
from playhead.engine.costs import CostTable
from playhead.engine.lead import LeadLimits
from playhead.engine.plan import Dispatch
from playhead.engine.policy import LaneLimits, PolicyConfig
from playhead.engine.simulator import Scenario, Simulator
from playhead.engine.types import Lane, ListenerState, ModelInfo, Urgency
from playhead.gateway.dialects.aura import open_aura
from playhead.gateway.dialects.base import Refused
from playhead.gateway.dialects.flux import open_flux
from playhead.gateway.dialects.realtime import open_realtime
from playhead.gateway.heard import Script
from playhead.gateway.messages import SpokenWord
from websockets.asyncio.client import connect

TESTS = Path(__file__).resolve().parent.parent

SHOWN_ELSEWHERE = [
    # 1: vllm-omni#2562, #4913: more of it; whole tests are below.
    ("engine/test_scheduler.py", "test_a_report_promotes_a_queued_chunk"),
    ("engine/test_scheduler.py", "test_with_one_worker_the_needy_take_turns_before_the_rich"),
    ("engine/test_policy.py", "test_earliest_deadline_first_and_among_the_dry_the_least_served"),
    # 9: livekit/agents#2463: another container than was asked for, heard as clicks.
    ("gateway/dialects/test_aura.py", "test_a_bad_query_is_refused_with_what_would_be_right"),
    # 11: cloudflare/agents#2261, openai-agents-js#1173: an interruption that came after the
    # generation had ended was ignored, though seconds of it were still to be heard.
    (
        "gateway/test_session_speech.py",
        "test_cancel_works_while_the_last_audio_waits_in_the_listener_s_buffer",
    ),
    (
        "gateway/dialects/test_flux.py",
        "test_a_turn_can_be_interrupted_when_all_of_it_has_been_sent",
    ),
    (
        "gateway/dialects/test_realtime.py",
        "test_a_truncation_of_what_was_sent_is_a_report_and_a_cancel",
    ),
    # 15: pipecat#5426, #5303, livekit/agents#2607: the history keeps words never heard.
    ("gateway/dialects/test_flux.py", "test_an_interrupt_with_an_offset_splits_the_text"),
    ("gateway/test_heard.py", "test_parts_add_up_and_never_shrink"),
    # 17: pipecat#5605: a client that never sends the offset that the protocol has.
    (
        "gateway/dialects/test_flux.py",
        "test_an_interrupt_without_an_offset_uses_what_the_session_believes",
    ),
    # 19: agents-js#2065: one "playback finished" that never comes wedges all later turns.
    (
        "gateway/test_session_speech.py",
        "test_a_silent_listener_s_utterance_is_done_after_its_estimated_end",
    ),
    ("gateway/test_session.py", "test_done_by_timer_hands_the_next_to_the_engine"),
    (
        "gateway/dialects/test_twilio.py",
        "test_a_call_whose_last_mark_never_comes_back_is_over_all_the_same",
    ),
    # 23: pocket-tts#238, Kokoro-FastAPI#25: work for a client that has left.
    ("gateway/dialects/test_adapter.py", "test_a_lost_socket_frees_the_engine"),
    ("engine/test_scheduler.py", "test_cancel_frees_a_running_utterance_with_its_work"),
]


@pytest.mark.parametrize(("file", "name"), SHOWN_ELSEWHERE)
def test_the_tests_that_are_named_exist(file: str, name: str) -> None:
    assert f"def {name}(" in (TESTS / file).read_text()


def test_1_of_eight_streams_the_one_that_runs_dry_first_is_next() -> None:
    """vllm-project/vllm-omni#2562, #4913: chunks were decoded in order of arrival."""
    rig = Rig(machine(1), PolicyConfig(lead=LeadLimits(fixed=1.0)))
    for number in range(1, 9):
        rig.say(number, "a" * 60)
    rig.settle()
    rig.now += 0.9
    for number in range(1, 9):
        held = 60 if number == 5 else 900
        rig.scheduler.report(report(number, rig.heard[number].samples, held, at=rig.now), rig.now)
    first = next(work for work in every_dispatch(rig) if work.lane is not Lane.LM)
    assert first.utterances == (5,)


def every_dispatch(rig: Rig) -> Iterator[Dispatch]:
    """What a machine does from now on, one after the other."""
    while works := rig.plan():
        for work in works:
            yield work
            rig.finish(work)


SERIAL = CostTable(
    name="one codec for all streams, one after the other",
    model=ModelInfo("m", ("any",), 24_000, 1_920, (1, 2, 4, 8), 4),
    lanes=LaneLimits(1, dict.fromkeys(Lane, 1), dict.fromkeys(Lane, 1)),
    step_fixed=0.0,
    step_per_stream=0.004,
    decode_fixed=0.001,
    urgent_rate=0.08 / 0.003,
    background_rate=0.08 / 0.003,
    background_slowdown=1.0,
)
"""80 ms of speech take 8 ms: ten streams at real time."""


def test_1_near_capacity_the_order_decides_who_hears_gaps() -> None:
    """Some 20 calls come and go within ten streams' capacity, with a first chunk of 80 ms."""
    stalled = {}
    for urgency in (Urgency.REPORTED, Urgency.NONE):
        policy = PolicyConfig(urgency, max_live=10_000, max_utilisation=100.0)
        scenario = Scenario(SERIAL, policy, rate=3.6, warmup=3.0, window=8.0)
        outcome = Simulator(scenario).run()
        stalled[urgency] = outcome.share(outcome.stalled_100)
    assert stalled[Urgency.REPORTED] <= 0.02
    assert stalled[Urgency.NONE] >= 0.1, "the same work, first come, first served"


def test_3_frames_that_were_made_and_not_sent_are_no_cushion() -> None:
    """sglang-omni PR 1903: streams were parked on frames that nobody had got yet."""
    rig = Rig(machine(1), PolicyConfig(lead=LeadLimits(fixed=3 * FRAME_SECONDS)))
    rig.submit(request(1))
    rig.text(1, "abcdef")
    (step,) = rig.plan()
    rig.finish(step)
    (stream,) = rig.scheduler.streams()
    assert stream.ready > 0, "made"
    assert stream.playhead.sent == 0, "and not sent"
    assert stream.playhead.runway(rig.now) == 0.0
    chunk = next(work for work in rig.plan() if work.lane is not Lane.LM)
    assert chunk.lane is Lane.URGENT, "its listener has nothing"
    rig.finish(chunk)
    assert stream.playhead.sent % FRAME == 0
    assert stream.playhead.sent > 0


def test_5_an_engine_slower_than_real_time_is_counted_as_underruns() -> None:
    """huggingface/speech-to-speech#557: played without a cushion, and nobody knew of the gaps."""
    player = Player(PlayerConfig(sample_rate=1_000, start_threshold=0.0))
    player.begin(1, 0.0)
    for number in range(50):  # 0.98 of real time
        player.add(1, 100, number == 49, number * 0.1 / 0.98)
    player.advance(6.0)
    told = player.counters(1, 6.0)
    assert told is not None
    assert told.underruns > 40
    assert told.starved > 0.05
    assert told.consumed == 5_000


def test_5_after_a_clear_the_next_reply_plays_whole_from_the_same_moment() -> None:
    """huggingface/speech-to-speech PR 561: a fade that was pending swallowed the next reply."""
    player = Player(PlayerConfig(sample_rate=1_000, start_threshold=0.0))
    player.begin(1, 0.0)
    player.add(1, 1_000, False, 0.0)
    player.clear(0.3)
    player.begin(2, 0.3)
    player.add(2, 500, True, 0.3)
    player.advance(0.8)
    old, new = player.counters(1, 0.8), player.counters(2, 0.8)
    assert new is not None
    assert (new.consumed, new.discarded, new.underruns) == (500, 0, 0)
    assert new.state is ListenerState.DRAINED
    assert old is None or (old.consumed, old.discarded) == (300, 700)


@pytest.mark.parametrize("asked", ["mp3", "opus", "wav", "flac"])
def test_9_a_format_that_is_not_served_is_refused_and_never_other_bytes(asked: str) -> None:
    for open_dialect, model in ((open_aura, "aura-2-thalia-en"), (open_flux, "flux-haley-en")):
        with pytest.raises(Refused) as caught:
            open_dialect(opening(f"model={model}&encoding={asked}"), facts(), "r")
        assert "linear16" in json.loads(caught.value.body)["err_msg"]
    call = Call(open_realtime(opening(), facts(), "r"), facts())
    output = {"format": {"type": f"audio/{asked}"}}
    (answer,) = call.send({"type": "session.update", "session": {"audio": {"output": output}}})
    assert answer["type"] == "error"
    assert "audio/pcm" in answer["error"]["message"]


def test_15_a_word_counts_once_it_has_begun_and_both_parts_are_the_text() -> None:
    script = Script()
    script.add_text("w1 w2 w3 rest")
    placed = ((0, 0), (9_600, 3), (19_200, 6))  # 0, 400, 800 ms at 24 kHz
    script.add_words(
        tuple(
            SpokenWord(text=f"w{n}", position=position, char_start=start, char_end=start + 2)
            for n, (position, start) in enumerate(placed, 1)
        )
    )
    heard, rest = script.split(round(0.650 * 24_000))
    assert heard == "w1 w2"
    assert heard + rest == "w1 w2 w3 rest"


def test_17_without_an_offset_the_answer_says_that_it_is_an_estimate() -> None:
    call = Call(open_flux(opening("model=flux-haley-en"), facts(), "r"), facts())
    call.send({"type": "Speak", "text": "one two"}, {"type": "Flush"})
    call.speak(48_000, words=(("one", 0, 0), ("two", 24_000, 4)))
    told: dict[str, Any]
    (told,) = call.send({"type": "Interrupt"}, at=0.5)
    assert told["text_spoken"] == "one", "what was made is not what was heard"
    assert told["audio_played_ms"] == 500
    assert told["estimated"] is True


def test_23_a_client_that_silently_answers_nothing_is_let_go() -> None:
    async def main() -> None:
        patience = {
            "ping_interval": 0.05,
            "ping_timeout": 0.3,
            "slow_hold": 80.0,
            "slow_close": 90.0,
        }
        async with gateway(interval=0.1, **patience) as running:
            url = f"ws://127.0.0.1:{running.port}/v1/speak?model=aura-2-thalia-en"
            client = await connect(url, ping_interval=None, max_size=None)
            await client.send(json.dumps({"type": "Speak", "text": "!endless talk "}))
            await eventually(lambda: bool(running.engine.live))
            client.transport.pause_reading()  # type: ignore[attr-defined]
            await eventually(lambda: not running.engine.live)
            assert not running.server.hub.routes
            client.transport.abort()
            await asyncio.sleep(0)

    uvloop.run(main())
