"""cartesia: bytes as they are made, events with word times, files, a fault, a stream left early."""

import cartesia
from cartesia import Cartesia
from common import HTTP, TEXT, Heard

VOICE = {"mode": "id", "id": "a0e99841-438c-4a64-b679-ae501e7d6091"}
RAW = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000}
WAV = {"container": "wav", "encoding": "pcm_f32le", "sample_rate": 44_100}
MP3 = {"container": "mp3", "sample_rate": 44_100, "bit_rate": 128_000}


def main() -> None:
    client = Cartesia(api_key="none", base_url=HTTP, max_retries=0)
    asked = {"model_id": "sonic-3", "voice": VOICE}
    heard, chunks = Heard(24_000), 0
    with client.tts.with_streaming_response.generate(
        transcript=TEXT, output_format=RAW, **asked
    ) as response:
        for data in response.iter_bytes(4_096):
            heard.add(data)
    for event in client.tts.generate_sse(
        transcript=TEXT, output_format=RAW, add_timestamps=True, **asked
    ):
        if event.type == "chunk":
            chunks += bool(event.audio)
        if event.type == "timestamps":
            times = event.word_timestamps
            heard.words += list(zip(times.words, times.start, strict=True))
        if event.type == "done":
            break
    wav = client.tts.generate(transcript="Two words.", output_format=WAV, **asked).read()
    mp3 = client.tts.generate(transcript="Two words.", output_format=MP3, **asked).read()
    refused = None
    try:
        client.tts.generate(
            transcript="x", output_format=RAW, model_id="sonic-3", voice={"mode": "id", "id": "no"}
        )
    except cartesia.APIStatusError as error:
        refused = error.status_code
    with client.tts.with_streaming_response.generate(
        transcript=TEXT * 8, output_format=RAW, **asked
    ) as response:
        for _ in response.iter_bytes(1_024):
            break
    heard.tell(chunks=chunks, wav=[wav[:4].decode(), len(wav)], mp3=len(mp3), refused=refused)


main()
