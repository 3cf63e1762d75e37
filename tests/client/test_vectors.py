"""The vectors that every client of the protocol must agree on, run against this one.

``tests/web/client_vectors.test.mjs`` runs the same against the browser's.
"""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from machine import PATIENCE
from playhead import client as api
from playhead.client.utterance import Utterance
from playhead.client.voice import Event, Voice
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

Message = dict[str, Any]
VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "client.json").read_text())
CASES: list[Message] = VECTORS["cases"]
ASKED = {"start", "text", "flush", "end", "cancel", "pause", "resume"}
SEQUENCED = {"started", "audio", "done", "cancelled", "failed", "warning", "draining"}


class Stage:
    """A server that says what a case tells it to, and a clock that goes when something plays."""

    def __init__(self) -> None:
        self.now = 100.0
        self.events: list[Event] = []
        self.asked: list[Message] = []
        self.arrivals: asyncio.Queue[ServerConnection] = asyncio.Queue()
        self.spoken: list[Utterance] = []
        self._socket: ServerConnection | None = None
        self._seq = 0

    async def come(self, socket: ServerConnection) -> None:
        """A connection: when it has said hello a step of the case answers; read until it ends."""
        with contextlib.suppress(ConnectionClosed):
            await socket.recv()
            await self.arrivals.put(socket)
            asked: list[Message] = []
            self.asked = asked
            async for frame in socket:
                message = json.loads(frame)
                if message["type"] == "ping":
                    stamps = {"received": 0, "sent": 0}
                    await socket.send(json.dumps({**message, "type": "pong", **stamps}))
                elif message["type"] in ASKED:
                    asked.append({k: v for k, v in message.items() if v is not None})

    async def accept(self, session: str) -> None:
        self._socket = await self.arrivals.get()
        self._seq = 0
        await self._socket.send(json.dumps(VECTORS["ready"] | {"session": session}))

    async def say(self, voice: Voice, message: Message) -> None:
        assert self._socket is not None
        if message["type"] in SEQUENCED:
            self._seq += 1
            message = message | {"seq": self._seq}
        if message["type"] == "audio":
            data = bytes(2 * message["samples"])
            rest = {"lane": "urgent", "slack": None, "depth": 0, "sent": 0, "bytes": len(data)}
            await self._socket.send(json.dumps(message | rest))
            await self._socket.send(data)
        else:
            await self._socket.send(json.dumps(message))
        await voice.ping()  # answered in order: what was said before it has been acted upon

    async def act(self, voice: Voice, step: Message) -> None:
        ((what, value),) = step.items()
        match what:
            case "speak":
                self.spoken.append(voice.speak(value))
            case "say":
                await self.say(voice, value)
            case "play":
                self.now += value / voice.sample_rate
            case "cancel":
                voice.cut(self.spoken[0])
                await voice.ping()
            case "close" if value == 1006:
                assert self._socket is not None
                self._socket.transport.abort()
            case "close":
                assert self._socket is not None
                await self._socket.close(value)
            case "refuse":
                socket = await self.arrivals.get()
                await socket.send(json.dumps(value))
                await socket.close(4001)
            case "accept":
                before = sum(isinstance(event, api.Moved) for event in self.events)
                await self.accept(value)
                while before == sum(isinstance(event, api.Moved) for event in self.events):
                    await asyncio.sleep(0)
            case _:
                raise AssertionError(step)


def told(utterance: Utterance, ending: Any) -> Message:
    """An outcome in the words of the vectors."""
    found: Message = {"warnings": [warning.code for warning in utterance.warnings]}
    names = ("samples", "heard", "heard_text", "unheard_text", "estimated")
    found |= {name: getattr(ending, name) for name in names if hasattr(ending, name)}
    match ending:
        case api.Done():
            return found | {"kind": "done", "ending": ending.reason}
        case api.Cancelled():
            return found | {"kind": "cancelled"}
        case api.ResumeFailed():
            found |= {"kind": "lost", "recovered": ending.recovered}
            return found | {"lost_reason": ending.reason, "told_by": ending.told_by}
        case api.ConnectionLost():
            return found | {"kind": "lost", "lost_reason": None}
        case api.ServerError():
            after = None if ending.retry_after is None else 1000 * ending.retry_after
            found |= {"kind": "failed", "code": ending.code, "expected": ending.expected}
            return found | {"retry_after": after}
    raise AssertionError(ending)


def matches(found: Message, wanted: Message) -> None:
    assert {name: found.get(name, "(none)") for name in wanted} == wanted


async def play(case: Message) -> None:
    stage = Stage()
    protocols: Any = ["playhead.v1.json"]
    async with serve(stage.come, "127.0.0.1", 0, subprotocols=protocols) as server:
        first = asyncio.create_task(stage.accept("s1"))
        async with api.connect(
            f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/session",
            encoding="json",
            binary_audio=True,
            recover=case.get("recover", True),
            on_event=stage.events.append,
            clock=lambda: stage.now,
        ) as voice:
            await first
            for step in case["steps"]:
                await stage.act(voice, step)
            endings = await asyncio.gather(
                *(utterance.done() for utterance in stage.spoken), return_exceptions=True
            )
    found = [told(utterance, end) for utterance, end in zip(stage.spoken, endings, strict=True)]
    for one, wanted in zip(found, case["outcomes"], strict=True):
        matches(one, wanted)
    if "events" in case:
        for event, wanted in zip(stage.events, case["events"], strict=True):
            matches({name: getattr(event, name, "(none)") for name in wanted}, wanted)
    assert stage.asked == case.get("sent", stage.asked)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_vectors(case: Message) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await play(case)

    asyncio.run(bounded())
