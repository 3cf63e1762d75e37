"""Every way in which a connection, a session or a request ends: one function each, blocking."""

import contextlib
import json
import socket
import ssl
import struct
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import msgpack
from machine import PATIENCE
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

Way = Callable[[int], None]
"""Goes that way at a server's port."""
SECURE: dict[int, ssl.SSLContext] = {}
"""What a client trusts, by the ports that want TLS."""


class Talker:
    """A client that blocks."""

    def __init__(self, port: int, path: str = "/v1/session", protocol: str = "v1.json") -> None:
        context = SECURE.get(port)
        self.socket: ClientConnection = connect(
            f"{'ws' if context is None else 'wss'}://127.0.0.1:{port}{path}",
            ssl=context,
            subprotocols=[Subprotocol(f"playhead.{protocol}")],
            compression=None,
            ping_interval=None,
            close_timeout=1.0,
            legacy=True,  # in Python's own "with": see __enter__
        )

    def __enter__(self) -> "Talker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: object, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, kind: str, **fields: Any) -> None:
        self.socket.send(json.dumps({"type": kind, **fields}))

    def until(self, *kinds: str) -> Any:
        while True:
            message = json.loads(self.socket.recv(10))
            if message["type"] in kinds:
                return message

    def hello(self, **fields: Any) -> Any:
        self.send("hello", **fields)
        return self.until("ready", "error")

    def say(self, text: str) -> None:
        self.send("text", text=text)
        self.send("end")

    def closed(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                self.socket.recv(10)

    def reset(self) -> None:
        self.socket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.socket.shutdown(socket.SHUT_RD)
        self.socket.socket.close()


def ask(port: int, request: bytes, most: int | None = None) -> bytes:
    """Plain HTTP: everything that comes back, to the end, or until there are ``most`` bytes."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
        plain.sendall(request)
        with contextlib.suppress(ConnectionError):
            while most is None or len(answer) < most:
                piece = plain.recv(65_536)
                if not piece:
                    break
                answer += piece
    return answer


def get(path: str, *headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


UPGRADE = (
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol: playhead.v1.json",
)

# -- ways to end ------------------------------------------------------------------------------


def a_bye(port: int) -> None:
    with Talker(port) as talker:
        talker.hello()
        talker.send("close")
        talker.closed()


def a_bye_after_speech(port: int) -> None:
    for codec in ("pcm_s16le", "opus"):
        with Talker(port) as talker:
            talker.hello(codec=codec)
            talker.say("A.")
            talker.until("done")
            talker.send("close")
            talker.closed()


def an_interruption(port: int) -> None:
    with Talker(port) as talker:
        talker.hello()
        talker.send("text", text="This is cut short. " * 9)
        talker.until("audio")
        talker.send("cancel")
        talker.until("cancelled")
        talker.send("close")


def a_cut(port: int) -> None:
    """The session expires; its client never returns."""
    talker = Talker(port)
    talker.hello()
    talker.say("Nobody hears the end of this.")
    talker.until("audio")
    talker.reset()


def a_return(port: int) -> None:
    talker = Talker(port)
    ready = talker.hello()
    talker.say("Hello again.")
    talker.until("audio")
    talker.reset()
    with Talker(port) as back:
        back.hello(resume={key: ready[key] for key in ("session", "token")} | {"seq": 0})
        back.send("close")
        back.closed()


def a_takeover(port: int) -> None:
    with Talker(port) as old, Talker(port) as new:
        ready = old.hello()
        new.hello(resume={key: ready[key] for key in ("session", "token")} | {"seq": 0})
        old.closed()
        new.send("close")
        new.closed()


def a_return_to_nothing(port: int) -> None:
    with Talker(port) as talker:
        talker.send("hello", resume={"session": "x" * 22, "token": "y" * 22, "seq": 0})
        talker.closed()


def no_hello(port: int) -> None:
    with Talker(port) as talker:
        talker.closed()


def faults_of_the_engine(port: int) -> None:
    with Talker(port) as talker:
        talker.hello()
        for sign in ("{text}", "{step}", "{decode}", "{nan}"):
            talker.say(f"This one breaks {sign} here.")
            talker.until("failed")
        talker.send("close")


def bad_messages(port: int) -> None:
    with Talker(port) as talker:
        talker.hello()
        for text in ("{", '{"type": "nothing"}', '{"type": "text", "text": 1}'):
            talker.socket.send(text)
            talker.until("error")
        talker.send("close")


def bad_frames(port: int) -> None:
    for frame in (b"\xff" * 8, b"\x81\x00", b"\xc1\x80" + bytes(4)):
        with Talker(port) as talker:
            talker.hello()
            talker.socket.socket.sendall(frame)
            talker.closed()


def a_flood(port: int) -> None:
    with Talker(port) as talker:
        talker.hello()
        ping = Frame(Opcode.PING, b"").serialize(mask=True)
        with contextlib.suppress(OSError):
            talker.socket.socket.sendall(ping * 100)
        talker.closed()


def one_that_does_not_read(port: int) -> None:
    """Its output is bounded, so it is told and cut."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.sendall(get("/v1/session", *UPGRADE))
        while b"\r\n\r\n" not in plain.recv(4096):
            continue
        for fields in (
            {"type": "hello", "codec": "pcm_f32le"},
            {"type": "text", "text": "Word after word. " * 30},
        ):
            data = json.dumps(fields).encode()
            plain.sendall(Frame(Opcode.TEXT, data).serialize(mask=True))
        time.sleep(0.6)


def plain_http(port: int) -> None:
    for request in (
        get("/"),
        get("/nothing"),
        get("/metrics"),
        get("/readyz"),
        get("/v1/session", *UPGRADE, "Origin: http://elsewhere.example"),
        get("/v1/session", "Upgrade: websocket", "Connection: Upgrade"),
        get("/" + "x" * 9_000),
        get("/", *(f"X-{n}: 1" for n in range(200))),
        b"nonsense\r\n\r\n",
    ):
        ask(port, request)


def half_open(port: int) -> None:
    for beginning in (b"", b"GET / HT"):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
            plain.sendall(beginning)
            with contextlib.suppress(ConnectionError):
                plain.recv(1)


def a_viewer(port: int) -> None:
    with Talker(port, "/v1/observe", "observe.v1") as viewer:
        viewer.socket.send('{"type": "nothing"}')
        for _ in range(3):
            viewer.socket.recv(10)


def another_dialect(port: int) -> None:
    base = "cartesia_version=2025-04-16&api_key=x"
    with Talker(port, f"/tts/websocket?{base}") as talker:
        ask_for = {
            "model_id": "sonic-3",
            "transcript": "Hello.",
            "voice": {"mode": "id", "id": "a0e99841-438c-4a64-b679-ae501e7d6091"},
            "output_format": {
                "container": "raw",
                "encoding": "pcm_s16le",
                "sample_rate": 24_000,
            },
            "context_id": "c1",
        }
        talker.socket.send(json.dumps(ask_for))
        talker.until("done")
        talker.socket.send(json.dumps(ask_for | {"context_id": "c2"}))
        talker.until("chunk")


def item(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content}


DIALECTS: dict[str, list[dict[str, Any]]] = {
    "/v1/text-to-speech/wave/stream-input": [{"text": " "}, {"text": "Hm. "}, {"text": ""}],
    "/v1/text-to-speech/nobody/stream-input": [],
    "/v1/text-to-speech/wave/multi-stream-input": [
        {"text": " ", "context_id": "a"},
        {"text": "Hm. ", "context_id": "a", "flush": True},
        {"close_socket": True},
    ],
    "/v1/speak": [
        {"type": "Speak", "text": "Hm."},
        {"type": "Flush"},
        {"type": "Close"},
    ],
    "/v2/speak?model=flux-alto-en": [
        {"type": "Speak", "text": "Hm."},
        {"type": "Flush"},
        {"type": "Close"},
    ],
    "/v1/realtime?model=wave": [
        {"type": "response.create", "response": {"input": [item("Hm.")]}},
        {"type": "nonsense"},
    ],
    "/v1/twilio": [
        {"event": "start", "streamSid": "MZ1", "start": {"streamSid": "MZ1"}},
        {"event": "speak", "text": "Hm."},
        {"event": "stop"},
    ],
    "/api/tts_streaming?voice=nobody": [],
    "/api/tts_streaming": [{"type": "Text", "text": "Hm."}, {"type": "Eos"}],
}
"""What each says after it has come, by its path."""


def other_dialects(port: int) -> None:
    """All of them: each says its words, hears what comes for a moment, and goes."""
    for path, messages in DIALECTS.items():
        packed = path.startswith("/api")
        with Talker(port, path) as talker:
            with contextlib.suppress(ConnectionClosed):
                for message in messages:
                    talker.socket.send(msgpack.packb(message) if packed else json.dumps(message))
            with contextlib.suppress(ConnectionClosed, TimeoutError):
                while True:
                    talker.socket.recv(0.2)


def requests_for_speech(port: int) -> None:
    """Spoken, refused, and left before its end."""
    for fields, most in (
        ({"input": "Hello.", "response_format": "pcm"}, None),
        ({"input": "Hello.", "stream_format": "sse", "response_format": "pcm"}, None),
        ({"input": "This breaks {step} here.", "response_format": "pcm"}, None),
        ({"input": "Hello.", "voice": "nobody"}, None),
        ({"input": "This is left early. " * 30, "response_format": "pcm"}, 1_000),
    ):
        body = json.dumps({"model": "wave", "voice": "alloy", **fields}).encode()
        head = (
            "POST /v1/audio/speech HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        ask(port, head.encode() + body, most)


NO_REQUESTS: tuple[bytes, ...] = (
    b"nonsense\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS, where none is spoken
    b"GET /v1/models HTTP/1.1\r\n\r\n",  # no host
    b"GET /v1/models HTTP/1.1\r\nno header\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: a\r\nContent-Length: many\r\n\r\n",
    b"GET /v1/models HTTP/9\r\nHost: a\r\n\r\n",
    b"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
)
"""What cannot be read as a request."""
LONG: tuple[bytes, ...] = (
    b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000,
    b"nonsense\r\n\r\n" + b"x" * 16_000,
)
"""The same; the answer may be lost, for the connection is closed before all of it has been read."""


def no_requests(port: int) -> None:
    """To the port of the HTTP API: each is answered, and so is one after a good request."""
    for data in NO_REQUESTS:
        assert b" 400 " in ask(port, data)
    for data in LONG:
        with contextlib.suppress(ConnectionError):
            ask(port, data)
    good = get("/v1/models")
    assert ask(port, good + b"nonsense\r\n\r\n").count(b"HTTP/1.1 ") == 2


def no_body(port: int) -> None:
    """The body of a request that has been answered cannot be read."""
    head = b"POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
        plain.sendall(head)
        assert plain.recv(65_536).startswith(b"HTTP/1.1 404")
        plain.sendall(b"zz\r\n")
        while plain.recv(65_536):
            continue


def left_http(port: int) -> None:
    """Nothing was asked, or not all of it, and some are reset."""
    beginning = b"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n{"
    for data, reset in ((b"", False), (beginning[:20], False), (beginning, False), (b"GE", True)):
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
            plain.sendall(data)
            if reset:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


HTTP_WAYS: list[Way] = [requests_for_speech, no_requests, no_body, left_http]
"""At the port of the HTTP API."""
WAYS: list[Way] = [
    a_bye,
    a_bye_after_speech,
    an_interruption,
    a_return,
    a_takeover,
    a_return_to_nothing,
    faults_of_the_engine,
    bad_messages,
    bad_frames,
    a_flood,
    one_that_does_not_read,
    plain_http,
    a_viewer,
    another_dialect,
    other_dialects,
]
