"""elevenlabs: plain calls: a stream, lines with times, files, a fault, and one left early."""

import base64

from common import HTTP, TEXT, Heard
from elevenlabs.client import ElevenLabs
from elevenlabs.core.api_error import ApiError

VOICE = "21m00Tcm4TlvDq8ikWAM"


def words(characters: list[str], starts: list[float]) -> list[tuple[str, float]]:
    """Characters with times as words with times."""
    found: list[tuple[str, float]] = []
    for character, start in zip(characters, starts, strict=True):
        if character.isspace():
            found.append(("", start))
        elif found and found[-1][0]:
            found[-1] = (found[-1][0] + character, found[-1][1])
        else:
            found.append((character, start))
    return [(word, start) for word, start in found if word]


def main() -> None:
    speech = ElevenLabs(base_url=HTTP, api_key="none").text_to_speech
    asked = {"voice_id": VOICE, "model_id": "eleven_flash_v2_5", "output_format": "pcm_24000"}
    heard, lines = Heard(24_000), 0
    for data in speech.stream(text=TEXT, **asked):
        heard.add(data)
    characters: list[str] = []
    starts: list[float] = []
    for line in speech.stream_with_timestamps(text=TEXT, **asked):
        lines += bool(base64.b64decode(line.audio_base_64))
        if line.alignment is not None:
            characters += line.alignment.characters
            starts += line.alignment.character_start_times_seconds
    heard.words = words(characters, starts)
    whole = speech.convert_with_timestamps(text="Two words.", **asked)
    mp3 = b"".join(speech.convert(voice_id=VOICE, text="Two words."))
    refused = None
    try:
        list(speech.convert(voice_id="nobody", text="x"))
    except ApiError as error:
        refused = [error.status_code, error.body["detail"]["status"]]
    for _ in speech.stream(text=TEXT * 8, **asked):
        break
    heard.tell(lines=lines, whole=len(whole.audio_base_64), mp3=len(mp3), refused=refused)


main()
