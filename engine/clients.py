"""What is known of each client beyond one utterance: its learned lead, its network, its streams."""

from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.stream import Stream
from playhead.engine.types import Request


class Clients:
    """By the client's name. Written by the scheduler only."""

    def __init__(self, limits: LeadLimits) -> None:
        self._limits = limits
        self._learners: dict[str, LeadLearner] = {}
        self._delays: dict[str, float] = {}
        self._streams: dict[str, dict[int, Stream]] = {}

    def open(
        self, request: Request, sample_rate: int, now: float, *, listens: bool = True
    ) -> Stream:
        """A client's next utterance begins at ``now``, with what is known of it. ``listens``:
        reports are taken, should any come."""
        learner = self._learners.setdefault(request.client, LeadLearner(self._limits))
        learner.begin()
        one_way = self._delays.get(request.client, 0.0)
        stream = Stream.opened(
            request, learner, sample_rate, now=now, one_way=one_way, listens=listens
        )
        self._streams.setdefault(request.client, {})[request.utterance] = stream
        return stream

    def delay(self, client: str, one_way: float) -> None:
        """The delay was measured; it holds for what is being spoken as well."""
        self._delays[client] = one_way
        for stream in self._streams.get(client, {}).values():
            stream.playhead.one_way = one_way

    def leave(self, stream: Stream) -> None:
        """It is over."""
        request = stream.request
        streams = self._streams[request.client]
        del streams[request.utterance]
        if not streams:
            del self._streams[request.client]

    def forget(self, client: str) -> None:
        """Drop what was learned."""
        self._learners.pop(client, None)
        self._delays.pop(client, None)
