"""elevenlabs: convert_realtime insists on TLS (SSL_CERT_FILE names the test's certificate)."""

from collections.abc import Iterator

from common import TEXT, TLS, Heard
from elevenlabs.client import ElevenLabs


def words() -> Iterator[str]:
    for word in TEXT.split(" "):
        yield word + " "


client = ElevenLabs(base_url=TLS, api_key="none")
heard = Heard(24_000)
for data in client.text_to_speech.convert_realtime(
    voice_id="21m00Tcm4TlvDq8ikWAM",
    text=words(),
    model_id="eleven_flash_v2_5",
    output_format="pcm_24000",
):
    heard.add(data)
heard.tell()
