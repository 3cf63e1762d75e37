"""wyoming-openai between Home Assistant's voice protocol and this server's OpenAI one."""

import asyncio
import contextlib
import os
import socket
import sys

from common import HTTP, TEXT, Heard
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient
from wyoming.info import Describe, Info
from wyoming.tts import Synthesize, SynthesizeVoice


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextlib.asynccontextmanager
async def bridge():
    """The bridge as docs/clients.md starts it, and its address."""
    address = f"tcp://127.0.0.1:{free_port()}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "wyoming_openai", "--uri", address, "--languages", "en"),
        *("--tts-openai-url", f"{HTTP}/v1", "--tts-openai-key", os.environ.get("KEY", "none")),
        *("--tts-models", "tts-1", "--tts-voices", "alloy", "--tts-backend", "OPENAI"),
    )
    try:
        yield address
    finally:
        process.terminate()
        await process.wait()


async def connected(address: str) -> AsyncClient:
    for _ in range(150):
        try:
            client = AsyncClient.from_uri(address)
            await client.connect()
        except OSError:
            await asyncio.sleep(0.1)
        else:
            return client
    raise TimeoutError(address)


async def main() -> None:
    heard, voices, over = Heard(24_000), [], False
    async with bridge() as address:
        client = await connected(address)
        await client.write_event(Describe().event())
        while not voices:
            event = await client.read_event()
            if event is not None and Info.is_type(event.type):
                programs = Info.from_event(event).tts
                voices = [voice.name for program in programs for voice in program.voices]
        asked = Synthesize(text=TEXT, voice=SynthesizeVoice(name=voices[0]))
        await client.write_event(asked.event())
        while not over:
            event = await client.read_event()
            if event is None:
                break
            if AudioStart.is_type(event.type):
                heard.rate = AudioStart.from_event(event).rate
            if AudioChunk.is_type(event.type):
                heard.add(AudioChunk.from_event(event).audio)
            over = AudioStop.is_type(event.type)
        await client.disconnect()
    heard.tell(voices=voices, over=over)


asyncio.run(main())
