"""Messages on their way to the server, kept until it surely has them.

The server counts the messages of a session. After a dropped socket it says how many it got;
what came later is sent again, in order, ahead of what is new. Reports and pings age, so they are
counted but never repeated.
"""

from collections import deque

from playhead.gateway.messages import Ack, ClientMessage, Ping, PlaybackReport, Start

_AGES = (PlaybackReport, Ack, Ping)


class Backlog:
    """A queue of messages to send, and the memory of those sent."""

    def __init__(self) -> None:
        self._waiting: deque[ClientMessage] = deque()
        self._sent: deque[tuple[int, ClientMessage]] = deque()
        self._count = 0

    def __bool__(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._waiting)

    def put(self, message: ClientMessage) -> None:
        """Queue a message."""
        self._waiting.append(message)

    def take(self) -> ClientMessage:
        """The next message to send; from now on it counts as sent."""
        message = self._waiting.popleft()
        self._count += 1
        if not isinstance(message, _AGES):
            self._sent.append((self._count, message))
        return message

    def confirm(self, utterance: str) -> None:
        """The server has opened the utterance with this id, hence has all that came before."""
        opened = (
            place
            for place, (_, message) in enumerate(self._sent)
            if isinstance(message, Start) and message.id == utterance
        )
        for _ in range(next(opened, -1) + 1):
            self._sent.popleft()

    def resume(self, received: int) -> None:
        """The server has ``received`` messages of the session; queue the rest again."""
        lost = [message for number, message in self._sent if number > received]
        fresh = [message for message in self._waiting if not isinstance(message, _AGES)]
        self._sent = deque(item for item in self._sent if item[0] <= received)
        self._waiting = deque([*lost, *fresh])
        self._count = received
