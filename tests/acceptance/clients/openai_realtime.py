"""openai: a realtime response to its end, then one that is interrupted and truncated."""

import asyncio
import base64
from typing import Any

from common import TEXT, WS, Heard
from openai import AsyncOpenAI

HTTP = WS.replace("ws://", "http://")


def asked(text: str) -> dict[str, Any]:
    part = {"type": "input_text", "text": text}
    return {"input": [{"type": "message", "role": "user", "content": [part]}]}


async def whole(connection: Any, heard: Heard) -> dict[str, Any]:
    """A response to its end."""
    kinds, transcript = set(), ""
    await connection.response.create(response=asked(TEXT))
    async for event in connection:
        kinds.add(event.type)
        if event.type == "response.output_audio.delta":
            heard.add(base64.b64decode(event.delta))
        if event.type == "response.output_audio_transcript.delta":
            transcript += event.delta
        if event.type == "response.done":
            break
    return {"kinds": sorted(kinds), "transcript": transcript}


async def interrupted(connection: Any) -> dict[str, Any]:
    """A response of which 0.9 s are heard; audio behind its end is counted."""
    await connection.response.create(response=asked(TEXT * 8))
    item, sound, late, status = "", 0, 0, ""
    async for event in connection:
        if event.type == "response.output_audio.delta":
            item = event.item_id
            late += bool(status)
            sound += len(base64.b64decode(event.delta))
        if sound >= 48_000:
            sound = -(2**60)
            await connection.response.cancel()
            await connection.conversation.item.truncate(
                item_id=item, content_index=0, audio_end_ms=900
            )
        if event.type == "response.done":
            status = event.response.status
        if event.type == "conversation.item.truncated":
            break
    kept = event.model_extra.get("transcript")
    told = {"status": status, "late": late, "audio_end_ms": event.audio_end_ms, "kept": kept}
    await connection.conversation.item.truncate(
        item_id=item, content_index=0, audio_end_ms=10_000_000
    )
    return {**told, "error": (await first(connection, "error")).error.param}


async def first(connection: Any, kind: str) -> Any:
    async for event in connection:
        if event.type == kind:
            return event
    raise EOFError(kind)


async def main() -> None:
    client = AsyncOpenAI(api_key="none", base_url=f"{HTTP}/v1")
    heard = Heard(24_000)
    async with client.realtime.connect(model="gpt-realtime") as connection:
        voice = {"output": {"voice": "marin", "format": {"type": "audio/pcm", "rate": 24_000}}}
        await connection.session.update(session={"type": "realtime", "audio": voice})
        told = await whole(connection, heard)
        told |= await interrupted(connection)
        await connection.response.create(response=asked(TEXT * 8))
        await first(connection, "response.output_audio.delta")
    heard.tell(**told)


asyncio.run(main())
