"""Our LiveKit plugin: a reply to its end, then one whose playing is started and interrupted."""

import asyncio
from types import SimpleNamespace

from common import TEXT, WS, Heard
from livekit import rtc
from playhead.client.integrations.livekit import PlayheadTTS


async def main() -> None:
    heard = Heard(24_000)
    cut: list[tuple[str, str]] = []
    output: rtc.EventEmitter = rtc.EventEmitter()
    tts = PlayheadTTS(url=WS, on_heard=lambda text, rest: cut.append((text, rest)))
    tts.follow(output)
    stream = tts.stream()
    for word in TEXT.split(" "):
        stream.push_text(word + " ")
    stream.end_input()
    started = False
    async for event in stream:
        heard.add(bytes(event.frame.data))
        for timed in event.frame.userdata.get("lk.timed_transcripts", ()):
            heard.words.append((str(timed), float(timed.start_time or 0.0)))
        if not started:
            started = True
            output.emit("playback_started", SimpleNamespace(created_at=0.0))
    await stream.aclose()
    output.emit("playback_finished", SimpleNamespace(playback_position=0.0, interrupted=False))
    second = tts.stream()
    second.push_text(TEXT)
    second.end_input()
    frames = 0
    async for _ in second:
        frames += 1
        if frames == 1:
            output.emit("playback_started", SimpleNamespace(created_at=0.0))
            await asyncio.sleep(2.0)
            output.emit(
                "playback_finished", SimpleNamespace(playback_position=2.0, interrupted=True)
            )
            break
    await second.aclose()
    await asyncio.sleep(0.5)
    heard.tell(cut=cut)
    await tts.aclose()


asyncio.run(main())
