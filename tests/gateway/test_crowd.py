"""Synthetic listeners, driven by literal times: what they send, hear and suffer."""

import pytest
from playhead.engine.types import Lane, ListenerState
from playhead.gateway.crowd import RATE, SHAKY_EVERY, Crowd, Member, Tally
from playhead.gateway.messages import (
    Ack,
    Audio,
    ClientMessage,
    Done,
    End,
    Failed,
    Hello,
    PlaybackReport,
    Ready,
    ServerMessage,
    Started,
    Text,
)
from playhead.loadgen.listener import Stall
from playhead.loadgen.record import Record

READY = Ready(
    session="s",
    token="t",
    resumed=False,
    codec="pcm_s16le",
    sample_rate=RATE,
    pre_skip=0,
    packet_samples=0,
    voice="v",
    voices=("v",),
    formats=(),
    limits={},
    grace=0.0,
    epoch=0,
    time=0.0,
    model="m",
    server="s",
)


def audio(index: int, samples: int, *, final: bool = False, epoch: int = 1) -> Audio:
    return Audio(
        seq=index + 2,
        epoch=epoch,
        index=index,
        position=index * samples if not final else 0,
        samples=samples,
        words=(),
        lane=Lane.URGENT,
        slack=None,
        depth=0.0,
        sent=0.0,
        final=final,
        data=b"\x01\x00" * samples,
    )


def done(samples: int, seq: int = 99) -> Done:
    return Done(
        seq=seq, epoch=1, samples=samples, heard=samples, estimated=False, reason="complete"
    )


class Stage:
    """One member and what it has sent, with a clock of ours."""

    def __init__(self, number: int = 0, reports: bool = True) -> None:
        self.tally = Tally()
        self.now = 100.0
        self.member = Member(number, reports, self.tally, self.now)
        self.sent: list[ClientMessage] = []

    def run(self, seconds: float) -> "Stage":
        self.now += seconds
        self.sent += self.member.advance(self.now)
        return self

    def give(self, *messages: ServerMessage) -> "Stage":
        for message in messages:
            self.member.deliver(message, self.now)
        return self

    def of(self, kind: type[ClientMessage]) -> list[ClientMessage]:
        return [message for message in self.sent if isinstance(message, kind)]

    def speaking(self) -> "Stage":
        """Up to the first chunk: half a second of sound is here."""
        self.run(0.1).give(READY).run(3.0)
        return self.give(Started(seq=1, epoch=1), audio(0, 12_000)).run(0.1)


@pytest.fixture
def stage() -> Stage:
    return Stage().speaking()


def test_a_listener_says_hello_and_then_what_it_wants_to_hear() -> None:
    stage = Stage().run(0.1)
    assert stage.sent == [Hello(start_threshold=100.0, reports=True)]
    stage.give(READY).run(3.0)
    assert [type(message) for message in stage.sent[1:]] == [Text, End]
    assert len(stage.of(Text)[0].text.split()) > 10  # type: ignore[union-attr]


def test_without_room_nobody_begins() -> None:
    stage = Stage().run(0.1).give(READY)
    stage.now += 5.0
    assert stage.member.advance(stage.now, room=False) == []
    assert stage.now < stage.member.due() < stage.now + 1.0
    stage.run(1.0)
    assert len(stage.of(Text)) == 1


def test_messages_take_their_time() -> None:
    stage = Stage()
    assert stage.run(0.001).sent == []
    assert stage.member.due() > stage.now
    assert stage.run(0.05).sent


def test_it_reports_while_it_plays(stage: Stage) -> None:
    states = [message.state for message in stage.of(PlaybackReport)]  # type: ignore[union-attr]
    assert ListenerState.PLAYING in states
    assert stage.member.look()[0] == "playing"
    assert stage.member.look()[1] == pytest.approx(0.45, abs=0.06)
    assert stage.member.lane == "urgent"
    before = len(stage.of(PlaybackReport))
    stage.run(0.3)
    assert len(stage.of(PlaybackReport)) > before


def test_running_dry_is_a_stall_of_exactly_its_length(stage: Stage) -> None:
    stage.run(0.9)  # half a second of it without sound
    assert stage.member.look() == ("stalled", 0.0)
    stage.give(audio(1, 12_000)).run(1.0)
    stage.give(audio(2, 0, final=True), done(24_000)).run(1.0)
    public = stage.tally.public()
    assert (public["spoken"], public["stalled"], public["stalls"]) == (1, 1, 1)
    assert public["longest"] == public["silence"] == pytest.approx(500, abs=60)


def test_a_late_tick_changes_nothing_of_what_is_heard() -> None:
    lengths = []
    for ticks in (1, 90):
        stage = Stage().speaking()
        for _ in range(ticks):
            stage.run(0.9 / ticks)
        stage.give(audio(1, 12_000)).run(1.0).give(done(24_000)).run(1.0)
        lengths.append(stage.tally.longest)
    assert lengths[0] == pytest.approx(lengths[1], abs=1e-6)


def test_after_one_utterance_comes_another(stage: Stage) -> None:
    stage.give(audio(1, 12_000), audio(2, 0, final=True)).run(1.2).give(done(24_000)).run(3.0)
    assert len(stage.of(Text)) == 2
    assert stage.member.look()[0] == "idle"
    assert stage.tally.public()["stalled"] == 0


def test_a_silent_listener_only_acknowledges() -> None:
    stage = Stage(reports=False).speaking()
    stage.give(audio(1, 0, final=True)).run(0.6).give(done(12_000)).run(0.2)
    assert stage.of(PlaybackReport) == []
    assert stage.of(Ack) == [Ack(99)]


def test_a_refusal_is_no_stall() -> None:
    stage = Stage().run(0.1).give(READY).run(3.0)
    refused = Failed(
        seq=2,
        epoch=1,
        code="overloaded",
        message="full",
        expected="later",
        heard=0,
        heard_text="",
        unheard_text="",
    )
    stage.give(Started(seq=1, epoch=1), refused).run(0.1)
    public = stage.tally.public()
    assert (public["refused"], public["spoken"], public["failed"]) == (1, 0, 0)
    assert public["ahead"] == 0


def test_a_silent_listener_that_got_nothing_acknowledges_nothing() -> None:
    stage = Stage(reports=False).run(0.1).give(READY).run(3.0).run(61.0)
    assert stage.of(Ack) == []
    assert stage.tally.failed == 1


def test_messages_before_ready_are_not_for_an_utterance() -> None:
    stage = Stage().run(0.1).give(Started(seq=1, epoch=1)).run(1.0)
    assert stage.member.look() == ("idle", 0.0)
    assert len(stage.sent) == 1


def test_one_whose_session_was_closed_does_nothing_more(stage: Stage) -> None:
    stage.member.lost()
    stage.sent.clear()
    assert stage.run(100.0).sent == []


def test_some_networks_stand_still() -> None:
    def slowest(number: int) -> float:
        """Seconds until a message got through, at worst, within two minutes."""
        member = Member(number, True, Tally(), 0.0)
        member.advance(1.0)
        worst = 0.0
        for i in range(1200):
            sent = 1.0 + i / 10
            member.deliver(Started(seq=1, epoch=1), sent)
            worst = max(worst, member.due() - sent)
            member.advance(sent + 10.0)
        return worst

    assert slowest(0) < 0.05
    assert slowest(SHAKY_EVERY - 1) > 0.3


def test_a_crowd_keeps_both_tallies_until_it_ends() -> None:
    crowd = Crowd()
    assert crowd.due() == float("inf")
    assert len(crowd.start(3, True, 10.0)) == 3
    assert crowd.due() == pytest.approx(10.0, abs=0.05)
    crowd.members[0]._tally.add(stalled_record())
    crowd.start(2, False, 20.0)
    public = crowd.public()
    assert (public["listeners"], public["reports"], public["states"]) == (2, False, {"idle": 2})
    assert public["members"] == [["idle", 0, ""], ["idle", 0, ""]]
    assert public["tallies"]["reported"]["longest"] == 250
    assert public["tallies"]["estimated"]["spoken"] == 0
    crowd.end()
    assert crowd.public()["tallies"] == {}


def stalled_record() -> Record:
    record = Record(1, 0.0, "text")
    record.stalls = [Stall(1.0, 0.25, 2)]
    return record


def test_what_is_held_ahead_is_averaged_over_looks(stage: Stage) -> None:
    stage.member.look()
    stage.run(0.2)
    stage.member.look()
    assert stage.tally.public()["ahead"] == pytest.approx(350, abs=60)
