"""A loudspeaker, where the optional package sounddevice and an audio device exist."""

import asyncio
from typing import Any

from playhead.engine.types import Pcm


class SpeakerMissing(Exception):
    """There is nothing to play on; the message says what to do about it."""


class Speaker:
    """Plays mono PCM as it comes. ``latency``: seconds from :meth:`play` to the ear."""

    def __init__(self, sample_rate: int) -> None:
        try:
            import sounddevice
        except ImportError:
            raise SpeakerMissing(
                "--play needs the package sounddevice: pip install 'playhead[play]'"
            ) from None
        except OSError:
            raise SpeakerMissing(
                "--play needs the library PortAudio (on Debian and Ubuntu: libportaudio2)"
            ) from None
        try:
            self._stream: Any = sounddevice.OutputStream(
                samplerate=sample_rate, channels=1, dtype="float32"
            )
            self._stream.start()
        except sounddevice.PortAudioError as error:
            raise SpeakerMissing(f"no audio device to play on: {error}") from None
        self.latency = float(self._stream.latency)

    async def play(self, pcm: Pcm) -> None:
        """Queue float32 [n]; waits while the device has enough."""
        await asyncio.to_thread(self._stream.write, pcm.reshape(-1, 1))

    def close(self) -> None:
        """Play what is queued, then let go of the device."""
        self._stream.stop()
        self._stream.close()
