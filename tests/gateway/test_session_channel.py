"""Messages are kept whether or not somebody is there to get them."""

from playhead.gateway.effects import Send
from playhead.gateway.limits import Limits
from playhead.gateway.messages import Draining
from playhead.gateway.session_channel import Channel


def test_posting() -> None:
    channel = Channel(Limits(outbox_bytes=10_000, outbox_seconds=1.0))
    first = Draining(seq=channel.next_seq, deadline=1.0)
    assert channel.post(first) == [Send(first)]
    channel.attached = False
    second = Draining(seq=channel.next_seq, deadline=2.0)
    assert channel.post(second, seconds=0.5) == []
    assert channel.outbox.after(0) == [first, second]


def test_limits_reach_the_outbox() -> None:
    channel = Channel(Limits(outbox_bytes=10_000, outbox_seconds=1.0))
    for _ in range(3):
        channel.post(Draining(seq=channel.next_seq, deadline=1.0), seconds=0.5)
    assert channel.outbox.floor == 1
