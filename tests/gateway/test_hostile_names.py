"""Names of voices and models that are paths, escapes or tricks, at every door that takes a name.

Each is refused, none reaches the engine, and no file is opened for any of them: names are looked up
among those that the server has, and never joined to a path. What is opened is seen by an audit
hook of the interpreter (PEP 578), which no code can go round.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import msgpack
import pytest
import uvloop
from api_kit import ApiClient, api
from audit import begin, watched
from fake_engine import INFO
from machine import PATIENCE
from playhead.gateway.messages import ErrorEvent, Hello, Ready, Start
from playhead.gateway.protocol import Wire
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidMessage, InvalidStatus
from websockets.typing import Subprotocol

CLIMBING = [
    *("../alto", "../../etc/passwd", "..\\..\\windows\\win.ini", "voices/../../etc/passwd"),
    *("....//....//etc/passwd", "./alto", "alto/..", "alto/../../alto", "..", ".", "../"),
]
ABSOLUTE = [
    *("/etc/passwd", "//etc/passwd", "\\\\host\\share\\voice", "C:\\voices\\alto", "file:alto"),
    *("file:///etc/passwd", "/proc/self/environ", "/dev/stdin", "~/voices/alto", "$HOME/alto"),
]
ESCAPED = [
    *("%2e%2e%2fetc%2fpasswd", "%2e%2e/alto", "..%2falto", "%252e%252e%252falto", "%c0%ae%c0%ae/a"),
    *("alto%00.wav", "%5c%5chost%5cshare"),
]
LOOKALIKE = [
    *("\u2024\u2024/alto", "\uff0e\uff0e\uff0falto", "..\u2215alto", "..\u2044alto", "\u202ealto"),
    *("\u0430lto", "alto\u200b", "ALTO", "alto ", " alto", "alto.wav", "alto.onnx"),
]
CONTROL = ["alto\0", "alto\0.wav", "\0", "alto\n", "alto\r\nX-Injected: 1", "\x1b[31malto"]
LONG = ["a" * 10_000, "../" * 1_000 + "etc/passwd"]
NAMES = CLIMBING + ABSOLUTE + ESCAPED + LOOKALIKE + CONTROL + LONG

ELEVEN = "/v1/text-to-speech"
VOICE = "21m00Tcm4TlvDq8ikWAM"
SONIC = {
    "model_id": "sonic-3",
    "voice": "alto",
    "output_format": {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000},
    "transcript": "one two",
}
SPEECH = {"model": "tts-1", "voice": "alloy", "input": "one", "response_format": "pcm"}

Door = Callable[[ApiClient, str], Awaitable[bool]]
"""Shows a name; whether it was taken."""


# -- the doors -----------------------------------------------------------------------------------


def native(encoding: str, *, at_start: bool) -> Door:
    """``hello`` or ``start`` of ``playhead.v1``."""

    async def show(client: ApiClient, name: str) -> bool:
        protocol = Subprotocol(f"playhead.v1.{encoding}")
        wire = Wire(encoding)  # type: ignore[arg-type]
        async with connect(client.gateway.url, subprotocols=[protocol]) as socket:
            await socket.send(wire.encode_client(Hello(voice=None if at_start else name)))
            if at_start:
                await socket.send(wire.encode_client(Start(voice=name)))
            while True:
                told = wire.decode_server(await socket.recv())
                if isinstance(told, ErrorEvent):
                    return told.code not in ("unknown_voice", "bad_value")
                if not isinstance(told, Ready) or not at_start:
                    return True

    return show


def request(path: str, body: dict[str, Any] | None = None, *fields: str) -> Door:
    """A request of the HTTP API: ``{}`` in the path stands for the name, else the field does."""

    async def show(client: ApiClient, name: str) -> bool:
        given = json.loads(json.dumps(body))
        target = given
        for field in fields[:-1]:
            target = target[field]
        if fields:
            target[fields[-1]] = name
        asked = await client.connect()
        content = b"" if body is None else json.dumps(given).encode()
        method = "GET" if body is None else "POST"
        answer = await asked.begin(
            method, path.replace("{}", quote(name, safe="")), content, connection="close"
        )
        asked.leave()
        assert answer.status_code < 500
        return answer.status_code < 300

    return show


def socket(
    path: str, *opening: dict[str, Any] | bytes, refused: Callable[[Any], bool] | None = None
) -> Door:
    """A dialect's socket: ``{}`` in the path or in a message stands for the name. ``refused`` says
    it of a frame; without it the connection is refused or closed."""

    async def show(client: ApiClient, name: str) -> bool:
        url = f"ws://127.0.0.1:{client.gateway.port}{path.replace('{}', quote(name, safe=''))}"
        try:
            async with connect(url) as spoken:
                for message in opening:
                    await spoken.send(named(message, name))
                while refused is not None and not refused(read(await spoken.recv())):
                    continue
                return refused is None and bool(await spoken.recv())
        except InvalidStatus as answer:
            return answer.response.status_code >= 500
        except InvalidMessage:
            return False  # longer than a line may be: 414, which the client cannot read
        except ConnectionClosed as closed:
            return closed.rcvd is None or closed.rcvd.code in (1000, 1011)

    return show


def named(message: dict[str, Any] | bytes, name: str) -> bytes | str:
    if isinstance(message, bytes):
        return message
    return json.dumps(message).replace('"{}"', json.dumps(name))


def read(frame: bytes | str) -> Any:
    return msgpack.unpackb(frame) if isinstance(frame, bytes) else json.loads(frame)


def session_update(field: str) -> list[dict[str, Any]]:
    voiced = {"type": "realtime", "audio": {"output": {"voice": "{}"}}}
    plain = {"type": "realtime", "model": "{}"}
    return [{"type": "session.update", "session": voiced if field == "voice" else plain}]


def errors(told: Any) -> bool:
    return "error" in told or told.get("type") in ("error", "Error")


TWILIO = {
    "event": "start",
    "streamSid": "MZ1",
    "start": {"streamSid": "MZ1", "customParameters": {"voice": "{}", "text": "one"}},
}
CONTEXT = {"context_id": "c", "continue": False}

DOORS: dict[str, Door] = {
    "native hello, msgpack": native("msgpack", at_start=False),
    "native hello, json": native("json", at_start=False),
    "native start, msgpack": native("msgpack", at_start=True),
    "native start, json": native("json", at_start=True),
    "openai voice": request("/v1/audio/speech", SPEECH, "voice"),
    "openai custom voice": request("/v1/audio/speech", {**SPEECH, "voice": {}}, "voice", "id"),
    "openai model": request("/v1/audio/speech", SPEECH, "model"),
    "openai models": request("/v1/models/{}"),
    "elevenlabs voice": request(f"{ELEVEN}/{{}}?output_format=pcm_24000", {"text": "one"}),
    "elevenlabs voice, streamed": request(f"{ELEVEN}/{{}}/stream", {"text": "one"}),
    "elevenlabs model": request(f"{ELEVEN}/{VOICE}", {"text": "one", "model_id": ""}, "model_id"),
    "cartesia voice": request("/tts/bytes", SONIC, "voice"),
    "cartesia voice id": request(
        "/tts/sse", {**SONIC, "voice": {"mode": "id", "id": ""}}, "voice", "id"
    ),
    "cartesia model": request("/tts/bytes", SONIC, "model_id"),
    "deepgram model": request("/v1/speak?model={}", {"text": "one"}),
    "elevenlabs socket": socket(f"{ELEVEN}/{{}}/stream-input", refused=errors),
    "elevenlabs contexts": socket(f"{ELEVEN}/{{}}/multi-stream-input", refused=errors),
    "elevenlabs socket, model": socket(
        f"{ELEVEN}/{VOICE}/stream-input?model_id={{}}", refused=errors
    ),
    "cartesia socket, voice": socket(
        "/tts/websocket", {**SONIC, **CONTEXT, "voice": {"mode": "id", "id": "{}"}}, refused=errors
    ),
    "cartesia socket, model": socket(
        "/tts/websocket", {**SONIC, **CONTEXT, "model_id": "{}"}, refused=errors
    ),
    "deepgram socket": socket("/v1/speak?model={}"),
    "deepgram flux": socket("/v2/speak?model={}"),
    "kyutai": socket("/api/tts_streaming?format=PcmMessagePack&voice={}", b"\0", refused=errors),
    "realtime model": socket("/v1/realtime?model={}"),
    "realtime voice": socket(
        "/v1/realtime?model=gpt-realtime", *session_update("voice"), refused=errors
    ),
    "twilio": socket("/v1/twilio", TWILIO),
}

ALIASES = {"kyutai": ["alto.wav", "alto.onnx"]}
"""There voices are named by files of the vendor's, which stand for the default voice here."""


def test_there_are_forty_names_and_more() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 40
    assert not set(NAMES) & set(INFO.voices)


@pytest.mark.parametrize("door", DOORS)
def test_a_hostile_name_is_refused_and_opens_no_file(door: str) -> None:
    async def main() -> None:
        begin()
        async with api(max_connections_per_address=1_000) as client:
            show = DOORS[door]
            await asyncio.wait_for(show(client, "no-such-voice"), PATIENCE)  # late imports
            with watched() as opened:
                taken = [
                    name for name in NAMES if await asyncio.wait_for(show(client, name), PATIENCE)
                ]
            assert taken == ALIASES.get(door, [])
            assert opened == []
            assert client.engine.requests == []

    uvloop.run(main())


def test_what_is_opened_is_seen(tmp_path: Any) -> None:
    (tmp_path / "alto.wav").write_bytes(b"RIFF")
    begin()
    with watched() as opened:
        (tmp_path / "alto.wav").read_bytes()
    assert opened == [f"open {str(tmp_path / 'alto.wav')!r}"]


@pytest.mark.parametrize("door", ["native hello, json", "openai voice", "elevenlabs socket"])
def test_a_name_that_is_there_is_taken(door: str) -> None:
    """The doors themselves: what refuses everything would pass as well."""

    async def main() -> None:
        async with api() as client:
            assert await client_takes(client, door)

    uvloop.run(main())


async def client_takes(client: ApiClient, door: str) -> bool:
    if door != "elevenlabs socket":
        return await DOORS[door](client, "alto")
    url = f"ws://127.0.0.1:{client.gateway.port}{ELEVEN}/alto/stream-input"
    async with connect(url):
        return True
