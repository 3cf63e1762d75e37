import asyncio

from playhead.client import connect
from playhead.codecs.wav import WavWriter


async def main() -> None:
    async with connect("ws://127.0.0.1:8080") as voice:
        with WavWriter("hello.wav", voice.sample_rate) as wav:
            async for part in voice.speak("Hello from the other side."):
                print(f"sample {part.position} {part.lane} {[word.text for word in part.words]}")
                wav.write(part.pcm)


asyncio.run(main())
