"""twilio: a call's markup and signature from the helper library; Twilio's side of its socket.

The library stands on the application's side. Twilio's own side cannot be had: it is played here,
from its documentation: what the markup says, media played at 8 kHz, marks sent back when reached.
"""

import asyncio
import base64
import json
import os
import struct
import time
import xml.etree.ElementTree as ElementTree

from common import TEXT, WS, Heard
from twilio.request_validator import RequestValidator
from twilio.twiml.voice_response import Connect, VoiceResponse
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

TOKEN = os.environ["PLAYHEAD_TOKEN"]
TICKETS = os.environ["PLAYHEAD_TICKETS"].split()
RATE = 8_000


def markup(url: str, **parameters: str) -> str:
    """What the application answers to Twilio's request for instructions."""
    call = Connect()
    stream = call.stream(url=url)
    for name, value in parameters.items():
        stream.parameter(name=name, value=value)
    answer = VoiceResponse()
    answer.append(call)
    return str(answer)


def read(answer: str) -> tuple[str, dict[str, str]]:
    """Where Twilio is told to connect, and the call's parameters."""
    (stream,) = ElementTree.fromstring(answer).iter("Stream")
    return stream.attrib["url"], {
        child.attrib["name"]: child.attrib["value"] for child in stream.iter("Parameter")
    }


def level(code: int) -> int:
    """A µ-law code (ITU-T G.711) as a 16-bit sample."""
    code = ~code & 0xFF
    size = ((((code & 0x0F) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84
    return -size if code & 0x80 else size


LEVELS = [struct.pack("<h", level(code)) for code in range(256)]


async def play(answer: str, heard: Heard) -> tuple[int | None, int]:
    """One call. The close code, and how many marks went back."""
    url, parameters = read(answer)
    signature = RequestValidator(TOKEN).compute_signature(url, {})
    marks, at = 0, time.monotonic()  # until when the call has something to play
    async with connect(
        url.replace("wss://", "ws://"), additional_headers={"X-Twilio-Signature": signature}
    ) as socket:
        start = {"streamSid": "MZ1", "callSid": "CA1", "customParameters": parameters}
        await socket.send(json.dumps({"event": "connected", "protocol": "Call"}))
        await socket.send(json.dumps({"event": "start", "streamSid": "MZ1", "start": start}))
        try:
            async for frame in socket:
                told = json.loads(frame)
                if told["event"] == "media":
                    data = base64.b64decode(told["media"]["payload"])
                    heard.add(b"".join(LEVELS[code] for code in data))
                    at = max(at, time.monotonic()) + len(data) / RATE
                if told["event"] == "mark":
                    asyncio.get_running_loop().call_later(
                        max(0.0, at - time.monotonic()), send, socket, frame
                    )
                    marks += 1
        except ConnectionClosed:
            pass
    return socket.close_code, marks


SENDING: set[asyncio.Task[None]] = set()


def send(socket: object, frame: str) -> None:
    task = asyncio.ensure_future(socket.send(frame))  # type: ignore[attr-defined]
    SENDING.add(task)
    task.add_done_callback(SENDING.discard)


async def refused(url: str, signature: str) -> int:
    try:
        async with connect(url, additional_headers={"X-Twilio-Signature": signature}):
            return 101
    except InvalidStatus as error:
        return error.response.status_code


async def main() -> None:
    here = WS.replace("ws://", "wss://") + "/v1/twilio"
    heard, other = Heard(RATE), Heard(RATE)
    path, parameter, unused = TICKETS
    code, marks = await play(markup(f"{here}/{path}", text=TEXT), heard)
    second, _ = await play(markup(here, text="Two words.", ticket=parameter), other)
    third, _ = await play(markup(here, text="Two words.", ticket=parameter), Heard(RATE))
    forged = RequestValidator("another").compute_signature(f"{here}/{unused}", {})
    heard.tell(
        codes=[code, second, third],
        marks=marks,
        other=len(other.pcm),
        forged=await refused(f"{WS}/v1/twilio/{unused}", forged),
    )


asyncio.run(main())
