"""What is known of each client beyond one utterance: its learned lead, its network, its streams."""

from playhead.engine.lead import LeadLearner, LeadLimits
from playhead.engine.stream import Stream


class Clients:
    """By the client's name. Written by the scheduler only."""

    def __init__(self, limits: LeadLimits) -> None:
        self._limits = limits
        self._learners: dict[str, LeadLearner] = {}
        self._delays: dict[str, float] = {}
        self._streams: dict[str, dict[int, Stream]] = {}

    def begin(self, client: str) -> LeadLearner:
        """What is learned of a client whose next utterance begins."""
        learner = self._learners.setdefault(client, LeadLearner(self._limits))
        learner.begin()
        return learner

    def one_way(self, client: str) -> float:
        """The measured delay to a client, seconds; 0 while it is unknown."""
        return self._delays.get(client, 0.0)

    def delay(self, client: str, one_way: float) -> None:
        """The delay was measured; it holds for what is being spoken as well."""
        self._delays[client] = one_way
        for stream in self._streams.get(client, {}).values():
            stream.playhead.one_way = one_way

    def join(self, stream: Stream) -> None:
        """A stream begins."""
        self._streams.setdefault(stream.request.client, {})[stream.request.utterance] = stream

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
