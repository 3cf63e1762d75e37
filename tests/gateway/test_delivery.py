"""Where a silent listener is, at literal times (1,000 samples a second; a byte is a sample)."""

import pytest
from playhead.engine.types import ListenerState, Source
from playhead.gateway.delivery import Delivery
from playhead.gateway.messages import PlaybackReport

S = ListenerState


class Stream:
    """Sends audio of one byte per sample, and tells what was delivered."""

    def __init__(self, threshold: float = 0.0) -> None:
        self.delivery = Delivery(1_000.0, threshold)
        self.end = 0

    def send(self, samples: int, now: float, epoch: int = 1, *, final: bool = False) -> None:
        self.end += samples
        self.delivery.on_audio(epoch, samples, self.end, final=final, now=now)

    def at(self, now: float, delivered: int | None = None) -> tuple[int, int, int, ListenerState]:
        """Epoch, received, consumed and state, ``delivered`` bytes being there (default: all)."""
        self.delivery.on_delivered(self.end if delivered is None else delivered, now)
        report = self.delivery.report(now)
        assert report is not None
        assert isinstance(report, PlaybackReport)
        assert report.received == report.consumed + report.buffered
        assert report.heard == report.consumed
        assert report.source is Source.SOCKET
        return report.epoch, report.received, report.consumed, report.state


def test_nothing_sent_is_nothing_to_tell() -> None:
    delivery = Delivery(1_000.0)
    delivery.on_delivered(100, 1.0)
    assert delivery.report(1.0) is None
    assert not delivery.busy


def test_what_is_acknowledged_at_once_plays_from_when_it_was_sent() -> None:
    stream = Stream()
    stream.send(1_000, 5.0)
    assert stream.delivery.busy
    assert stream.at(5.2) == (1, 1_000, 200, S.PLAYING)
    assert stream.at(5.7) == (1, 1_000, 700, S.PLAYING)


def test_playback_begins_after_the_declared_threshold() -> None:
    stream = Stream(threshold=0.3)
    stream.send(1_000, 5.0)
    assert stream.at(5.2) == (1, 1_000, 0, S.PLAYING)
    assert stream.at(5.5) == (1, 1_000, 200, S.PLAYING)


def test_a_network_that_stands_still_leaves_the_listener_dry_where_open_loop_plays_on() -> None:
    stream = Stream()
    stream.send(400, 0.0)
    assert stream.at(0.2) == (1, 400, 200, S.PLAYING)
    stream.send(2_000, 0.2)
    assert stream.at(0.3, delivered=400) == (1, 400, 300, S.PLAYING)
    assert stream.at(1.3, delivered=400) == (1, 400, 400, S.STALLED)
    # Back again: it plays from the arrival, at most one look ago, not from the sending.
    assert stream.at(1.5) == (1, 2_400, 600, S.PLAYING)


def test_a_part_counts_when_the_whole_of_it_is_there() -> None:
    stream = Stream()
    stream.send(400, 0.0)
    assert stream.at(0.1, delivered=399) == (1, 0, 0, S.IDLE)


def test_all_played_is_drained_once_it_is_final() -> None:
    stream = Stream()
    stream.send(400, 0.0)
    assert stream.at(1.0) == (1, 400, 400, S.STALLED)
    stream.send(0, 1.0, final=True)
    assert stream.at(1.1) == (1, 400, 400, S.DRAINED)
    stream.delivery.ended(1)
    assert not stream.delivery.busy
    assert stream.delivery.report(1.2) is None


def test_the_next_utterance_plays_behind_the_one_before() -> None:
    stream = Stream()
    stream.send(1_000, 0.0, final=True)
    stream.send(500, 0.2, epoch=2)
    assert stream.at(0.5) == (1, 1_000, 500, S.PLAYING)
    assert stream.at(1.2) == (2, 500, 200, S.PLAYING)
    assert stream.at(9.0) == (2, 500, 500, S.STALLED)


def test_the_one_that_still_arrives_is_told_before_the_next() -> None:
    stream = Stream()
    stream.send(1_000, 0.0, final=True)
    stream.send(500, 0.0, epoch=2)
    assert stream.at(0.5, delivered=0) == (1, 0, 0, S.IDLE)


def test_a_cut_takes_what_the_client_holds_and_what_is_on_its_way() -> None:
    stream = Stream()
    stream.send(1_000, 0.0)
    assert stream.at(0.3) == (1, 1_000, 300, S.PLAYING)
    stream.send(1_000, 0.3)
    stream.delivery.cut(1, 0.3)
    assert not stream.delivery.busy
    stream.send(500, 0.4, epoch=2)
    assert stream.at(0.5) == (2, 500, 100, S.PLAYING)


def test_a_cut_leaves_the_utterances_before_it() -> None:
    stream = Stream()
    stream.send(1_000, 0.0, final=True)
    stream.send(500, 0.0, epoch=2)
    assert stream.at(0.4) == (1, 1_000, 400, S.PLAYING)
    stream.delivery.cut(2, 0.4)
    assert stream.at(0.6) == (1, 1_000, 600, S.PLAYING)
    stream.send(300, 0.6, epoch=3)
    assert stream.at(1.1) == (3, 300, 100, S.PLAYING)


def test_ended_keeps_what_follows() -> None:
    stream = Stream()
    stream.send(100, 0.0, final=True)
    stream.send(500, 0.0, epoch=2)
    stream.delivery.on_delivered(stream.end, 0.0)
    stream.delivery.ended(1)
    assert stream.at(0.3) == (2, 500, 200, S.PLAYING)


@pytest.mark.parametrize("late", [0.0, 0.15])
def test_the_error_is_at_most_one_look(late: float) -> None:
    stream = Stream()
    stream.delivery.on_delivered(0, 1.0)
    stream.send(1_000, 1.0)
    stream.delivery.on_delivered(0 if late else 1_000, 1.2)
    _, _, consumed, _ = stream.at(1.4)
    assert consumed == (200 if late else 400)
