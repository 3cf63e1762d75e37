"""cartesia: a context with continuations and word times, then one that is cancelled."""

import time

from cartesia import Cartesia
from common import TEXT, WS, Heard

VOICE = "a0e99841-438c-4a64-b679-ae501e7d6091"
RAW = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 44_100}


def main() -> None:
    client = Cartesia(api_key="none", websocket_base_url=WS)
    heard = Heard(44_100)
    with client.tts.websocket_connect() as connection:
        context = connection.context(
            model_id="sonic-3",
            voice={"mode": "id", "id": VOICE},
            output_format=RAW,
            add_timestamps=True,
        )
        for word in TEXT.split(" "):
            context.push(word + " ")
        context.no_more_inputs()
        for response in context.receive():
            if response.type == "chunk" and response.audio:
                heard.add(response.audio)
            if response.type == "timestamps" and response.word_timestamps is not None:
                times = response.word_timestamps
                heard.words += list(zip(times.words, times.start, strict=True))
        doomed = connection.context(
            model_id="sonic-3", voice={"mode": "id", "id": VOICE}, output_format=RAW
        )
        doomed.push(TEXT * 8, continue_=False)
        for _ in doomed.receive():
            break
        doomed.cancel()
        time.sleep(0.5)
        heard.tell()


main()
