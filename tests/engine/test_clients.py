"""What outlives an utterance of a client, and what does not."""

from doubles import HZ, request
from playhead.engine.clients import Clients
from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.playhead import Playhead
from playhead.engine.stream import Stream


def stream(number: int, client: str) -> Stream:
    return Stream(request(number, client), Playhead(HZ, 0.0), LeadLearner(LeadLimits()))


def test_what_is_learned_stays_until_it_is_forgotten() -> None:
    clients = Clients(LeadLimits())
    first = clients.begin("a")
    assert clients.begin("a") is first
    assert clients.begin("b") is not first
    clients.forget("a")
    clients.forget("nobody")
    assert clients.begin("a") is not first


def test_a_delay_reaches_the_client_s_streams_and_no_other() -> None:
    clients = Clients(LeadLimits())
    mine, again, other = stream(1, "a"), stream(2, "a"), stream(3, "b")
    for made in (mine, again, other):
        clients.join(made)
    clients.delay("a", 0.25)
    assert [made.playhead.one_way for made in (mine, again, other)] == [0.25, 0.25, 0.0]
    clients.leave(mine)
    clients.delay("a", 0.5)
    assert [made.playhead.one_way for made in (mine, again)] == [0.25, 0.5]
    clients.leave(again)
    clients.delay("a", 0.75)
    assert again.playhead.one_way == 0.5
    assert (clients.one_way("a"), clients.one_way("b")) == (0.75, 0.0)
    clients.forget("a")
    assert clients.one_way("a") == 0.0
