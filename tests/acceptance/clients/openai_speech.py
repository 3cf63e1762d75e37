"""openai: streamed pcm, events, an mp3 file, models, an error, and a stream that is left early."""

import asyncio
import base64

import openai
from common import HTTP, TEXT, Heard


async def main() -> None:
    client = openai.AsyncOpenAI(base_url=f"{HTTP}/v1", api_key="none", max_retries=0)
    heard = Heard(24_000)
    speech = client.audio.speech
    async with speech.with_streaming_response.create(
        model="gpt-4o-mini-tts", voice="alloy", input=TEXT, response_format="pcm"
    ) as response:
        async for data in response.iter_bytes(4_096):
            heard.add(data)
    async with speech.with_streaming_response.create(
        model="tts-1", voice="nova", input="Two words.", response_format="pcm", stream_format="sse"
    ) as response:
        events = [line async for line in response.iter_lines() if line.startswith("data: ")]
    mp3 = await speech.create(model="tts-1", voice="nova", input="Two words.")
    models = [model.id async for model in client.models.list()]
    try:
        await speech.create(model="tts-1", voice="nobody", input="Two words.")
        refused = None
    except openai.BadRequestError as error:
        refused = {"param": error.param, "message": str(error)}
    async with speech.with_streaming_response.create(
        model="tts-1", voice="alloy", input=TEXT * 8, response_format="pcm"
    ) as response:
        async for _ in response.iter_bytes(1_024):
            break
    audio = [line for line in events if "speech.audio.delta" in line]
    heard.tell(
        events=len(audio),
        done="speech.audio.done" in events[-1],
        event_bytes=sum(len(base64.b64decode(e.split('"audio":"')[1][:-2])) for e in audio),
        mp3=len(mp3.content),
        models=models,
        refused=refused,
    )


asyncio.run(main())
