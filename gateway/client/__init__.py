"""Python client of Playhead: ``async with connect(url) as voice: voice.speak("Hello.")``."""

from playhead.client.connection import connect
from playhead.client.errors import (
    ConnectionFailed,
    ConnectionLost,
    PlayheadError,
    ResumeFailed,
    ServerError,
    UtteranceFailed,
)
from playhead.client.moving import Moved
from playhead.client.player import Player
from playhead.client.track import Counters, PlayerConfig
from playhead.client.utterance import AudioMessage, Cancelled, Done, Utterance
from playhead.client.voice import Voice

__all__ = [
    "AudioMessage",
    "Cancelled",
    "ConnectionFailed",
    "ConnectionLost",
    "Counters",
    "Done",
    "Moved",
    "Player",
    "PlayerConfig",
    "PlayheadError",
    "ResumeFailed",
    "ServerError",
    "Utterance",
    "UtteranceFailed",
    "Voice",
    "connect",
]
