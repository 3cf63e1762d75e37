"""deepgram-sdk: v1 with Flush and Clear; v2 with an Interrupt that tells its playback offset."""

import sys
import threading
import time
from typing import Any

from common import HTTP as API
from common import TEXT, WS, Heard
from deepgram import DeepgramClient
from deepgram.core.api_error import ApiError
from deepgram.core.events import EventType
from deepgram.environment import DeepgramClientEnvironment
from deepgram.speak.v1.types import SpeakV1Clear, SpeakV1Close, SpeakV1Flush, SpeakV1Text
from deepgram.speak.v2.types import (
    SpeakV2Close,
    SpeakV2Flush,
    SpeakV2Interrupt,
    SpeakV2InterruptPlaybackOffset,
    SpeakV2Speak,
)

HTTP = WS.replace("ws://", "http://")
environment = DeepgramClientEnvironment(base=HTTP, production=WS, agent=WS, agent_rest=HTTP)
client = DeepgramClient(api_key="none", environment=environment)


class Ears:
    """Listens on a thread; ``until`` waits for a message of a type."""

    def __init__(self, connection: Any, heard: Heard) -> None:
        self.messages: list[Any] = []
        self.audio_after_clear = 0
        self._heard = heard
        self._connection = connection
        connection.on(EventType.MESSAGE, self._take)
        self._thread = threading.Thread(target=connection.start_listening, daemon=True)
        self._thread.start()

    def _take(self, message: Any) -> None:
        if isinstance(message, bytes):
            self._heard.add(message)
        self.messages.append(message)

    def until(self, kind: str, seconds: float = 30.0) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for index, message in enumerate(self.messages):
                if getattr(message, "type", None) == kind:
                    self.messages = self.messages[index + 1 :]
                    return message
            time.sleep(0.01)
        raise TimeoutError(f"no {kind} in {self.messages[-5:]}")


def aura() -> None:
    heard, rest = Heard(24_000), Heard(24_000)
    with client.speak.v1.connect(
        model="aura-2-thalia-en", encoding="linear16", sample_rate=24_000
    ) as connection:
        ears = Ears(connection, heard)
        ears.until("Metadata")
        for word in TEXT.split(" "):
            connection.send_text(SpeakV1Text(text=word + " ", type="Speak"))
        connection.send_flush(SpeakV1Flush(type="Flush"))
        flushed = ears.until("Flushed").sequence_id
        ears._heard = rest
        connection.send_text(SpeakV1Text(text=TEXT * 8, type="Speak"))
        while not rest.pcm:
            time.sleep(0.01)
        connection.send_clear(SpeakV1Clear(type="Clear"))
        ears.until("Cleared")
        before = len(rest.pcm)
        time.sleep(0.5)
        after = len(rest.pcm) - before
        connection.send_close(SpeakV1Close(type="Close"))
    heard.tell(flushed=flushed, after_clear=after)


def flux() -> None:
    heard, rest = Heard(24_000), Heard(24_000)
    with client.speak.v2.connect(
        model="flux-haley-en", encoding="linear16", sample_rate=24_000
    ) as connection:
        ears = Ears(connection, heard)
        ears.until("Connected")
        for word in TEXT.split(" "):
            connection.send_speak(SpeakV2Speak(text=word + " "))
        connection.send_flush(SpeakV2Flush())
        speech_id = ears.until("SpeechStarted").speech_id
        metadata = ears.until("SpeechMetadata")
        ears._heard = rest
        connection.send_speak(SpeakV2Speak(text=TEXT * 8))
        while len(rest.pcm) < 24_000 * 2:
            time.sleep(0.01)
        offset = metadata.audio_duration_ms + 900
        at = SpeakV2InterruptPlaybackOffset(value=offset)
        connection.send_interrupt(SpeakV2Interrupt(playback_offset=at))
        told = ears.until("SpeechInterrupted")
        before = len(rest.pcm)
        time.sleep(0.5)
        after = len(rest.pcm) - before
        connection.send_close(SpeakV2Close())
    heard.tell(
        started=speech_id == metadata.speech_id,
        duration_ms=metadata.audio_duration_ms,
        characters=metadata.input_character_count,
        offset=offset,
        played=told.audio_played_ms,
        spoken=told.text_spoken,
        remaining=told.text_remaining,
        after_interrupt=after,
    )


def rest() -> None:
    """A plain call, a file, and a stream that is left early. Its address is the other port."""
    plain = DeepgramClient(
        api_key="none",
        environment=DeepgramClientEnvironment(base=API, production=WS, agent=WS, agent_rest=API),
    ).speak.v1.audio
    heard = Heard(24_000)
    raw = {"model": "aura-2-thalia-en", "encoding": "linear16", "container": "none"}
    for data in plain.generate(text=TEXT, sample_rate=24_000, **raw):
        heard.add(data)
    mp3 = b"".join(plain.generate(text="Two words."))
    refused = None
    try:
        list(plain.generate(text="x", model="nobody"))
    except ApiError as error:
        refused = error.status_code
    for _ in plain.generate(text=TEXT * 8, **raw):
        break
    heard.tell(mp3=len(mp3), refused=refused)


{"v1": aura, "v2": flux, "rest": rest}[sys.argv[1]]()
