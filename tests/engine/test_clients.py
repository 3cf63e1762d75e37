"""What outlives an utterance of a client, and what does not."""

from doubles import HZ, request
from playhead.engine.clients import Clients
from playhead.engine.lead import LeadLimits
from playhead.engine.stream import Stream


def opened(clients: Clients, number: int, client: str) -> Stream:
    return clients.open(request(number, client), HZ, 0.0)


def test_what_is_learned_stays_until_it_is_forgotten() -> None:
    clients = Clients(LeadLimits())
    first = opened(clients, 1, "a").learner
    assert opened(clients, 2, "a").learner is first
    assert opened(clients, 3, "b").learner is not first
    clients.forget("a")
    clients.forget("nobody")
    assert opened(clients, 4, "a").learner is not first


def test_a_delay_reaches_the_client_s_streams_and_no_other() -> None:
    clients = Clients(LeadLimits())
    mine, again, other = (opened(clients, 1, "a"), opened(clients, 2, "a"), opened(clients, 3, "b"))
    clients.delay("a", 0.25)
    assert [made.playhead.one_way for made in (mine, again, other)] == [0.25, 0.25, 0.0]
    clients.leave(mine)
    clients.delay("a", 0.5)
    assert [made.playhead.one_way for made in (mine, again)] == [0.25, 0.5]
    clients.leave(again)
    clients.delay("a", 0.75)
    assert again.playhead.one_way == 0.5
    assert opened(clients, 4, "a").playhead.one_way == 0.75
    assert opened(clients, 5, "b").playhead.one_way == 0.0
    clients.forget("a")
    assert opened(clients, 6, "a").playhead.one_way == 0.0
