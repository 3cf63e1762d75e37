"""How an utterance ended, from the server's message."""

from playhead.client.utterance import Cancelled, Done
from playhead.gateway import messages as m


def outcome(message: m.Done | m.Cancelled) -> Done | Cancelled:
    """The client's value of it."""
    if isinstance(message, m.Done):
        return Done(message.samples, message.heard, message.estimated, message.reason)
    return Cancelled(message.heard, message.heard_text, message.unheard_text, message.estimated)
