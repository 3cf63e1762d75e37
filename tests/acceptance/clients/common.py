"""What every client script shares: where the server is, and how it tells what it has heard."""

import json
import os
import time
import wave
from typing import Any

WS = os.environ.get("PLAYHEAD_WS", "")
HTTP = os.environ.get("PLAYHEAD_HTTP", "")
TLS = os.environ.get("PLAYHEAD_TLS", "")
OUT = os.environ.get("PLAYHEAD_OUT", "")
TEXT = os.environ.get("PLAYHEAD_TEXT", "")


class Heard:
    """16-bit mono audio as it arrives. ``spread``: seconds from the first piece to the last."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.pcm = b""
        self.times: list[float] = []
        self.words: list[tuple[str, float]] = []
        self.begun = time.monotonic()

    def add(self, data: bytes) -> None:
        if data:
            self.pcm += data
            self.times.append(time.monotonic() - self.begun)

    def tell(self, **more: Any) -> None:
        """Write the audio, print one JSON line."""
        if OUT:
            with wave.open(OUT, "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(self.rate)
                file.writeframes(self.pcm)
        told = {
            "seconds": len(self.pcm) / 2 / self.rate,
            "pieces": len(self.times),
            "first": self.times[0] if self.times else None,
            "last": self.times[-1] if self.times else None,
            "words": self.words,
            **more,
        }
        print(json.dumps(told), flush=True)
