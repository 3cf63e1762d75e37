"""livekit-agents: a plugin's stream is read to its end, then a second one is dropped midway.

Dropping it leaves the socket in the plugin's hands, which is how an agent interrupts.
"""

import asyncio
import sys
from typing import Any

import aiohttp
from common import HTTP, TEXT, WS, Heard

PLUGIN = sys.argv[1].removesuffix("-http")
# The whole text in one HTTP request: synthesize(), where stream() would take a socket.
WHOLE = PLUGIN == "openai" or sys.argv[1].endswith("-http")


def plugin(session: aiohttp.ClientSession) -> Any:
    base = HTTP if WHOLE else WS.replace("ws://", "http://")
    if PLUGIN == "cartesia":
        from livekit.plugins import cartesia

        return cartesia.TTS(api_key="none", base_url=base, http_session=session)
    if PLUGIN == "elevenlabs":
        from livekit.plugins import elevenlabs

        return elevenlabs.TTS(
            api_key="none", base_url=f"{base}/v1", encoding="pcm_24000", http_session=session
        )
    if PLUGIN == "deepgram":
        from livekit.plugins import deepgram

        return deepgram.TTS(api_key="none", base_url=f"{base}/v1/speak", http_session=session)
    if PLUGIN == "deepgram-flux":
        from livekit.plugins import deepgram

        return deepgram.TTSv2(
            api_key="none", base_url=f"{base}/v2/speak", sample_rate=24_000, http_session=session
        )
    from livekit.plugins import openai

    return openai.TTS(api_key="none", base_url=f"{HTTP}/v1", response_format="pcm")


async def main() -> None:
    heard = Heard(24_000)
    async with aiohttp.ClientSession() as session:
        tts = plugin(session)
        if WHOLE:
            stream = tts.synthesize(TEXT)
        else:
            stream = tts.stream()
            for word in TEXT.split(" "):
                stream.push_text(word + " ")
            stream.end_input()
        async for event in stream:
            heard.add(bytes(event.frame.data))
            for timed in event.frame.userdata.get("lk.timed_transcripts", ()):
                heard.words.append((str(timed), float(timed.start_time or 0.0)))
        await stream.aclose()
        doomed = tts.synthesize(TEXT * 8) if WHOLE else tts.stream()
        if not WHOLE:
            doomed.push_text(TEXT * 8)
        async for _ in doomed:
            break
        await doomed.aclose()
        await asyncio.sleep(0.5)
        heard.tell()
        await tts.aclose()


asyncio.run(main())
