"""Races for one session, over real sockets: several want it at the same instant, or it ends then.

A client says one text in pieces. In the middle of its speech come other sockets of it and show its
token. Afterwards at most one of all may hold the session, each other one must have been told why
not as docs/protocol.md says, and what came over all of them together must be the text's sound,
sample by sample, each message the same wherever it came.
"""

import asyncio
import hashlib
import http.client
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from live import sound
from machine import PATIENCE
from playhead.gateway import messages as m
from races_plan import CHAINED, Kind, Old, Plan
from races_socket import GONE, Said, Socket

NORMAL, GOING_AWAY, POLICY, RESTART = 1000, 1001, 1008, 1012
TAKEN_OVER, RESUME_FAILED = 4000, 4001
LOST: Final = (TAKEN_OVER, RESUME_FAILED)
ENDS: Final = {
    Kind.REVOKED: (*LOST, POLICY),
    Kind.DRAIN: (*LOST, GOING_AWAY, RESTART),
}
"""Close codes that a socket may get which does not have the session in the end."""
STATUS: Final = {Kind.REVOKED: (401, 429), Kind.DRAIN: (503, GONE)}
LOOK: Final = 0.005
LEFT: Final = ("playhead_sessions", "playhead_connections", "playhead_engine_utterances")

Act = Callable[[], Awaitable[object]]


async def _nothing() -> None:
    """Nobody waits for anything."""


@dataclass
class Verdict:
    """How a race went. ``won``: the number of sockets that had the session in the end; ``whole``:
    what came is all of the text's sound."""

    plan: Plan
    won: int = 0
    whole: bool = False
    ends: list[str] = field(default_factory=list)  # of the old socket, and of those that came
    faults: list[str] = field(default_factory=list)


class Race:
    """One race at the server of ``url``. It starts when ``start`` returns; ``strike`` makes happen
    what it is raced against, where that is not the client's doing; ``key``: of the API."""

    def __init__(
        self,
        url: str,
        plan: Plan,
        *,
        start: Act = _nothing,
        strike: Act = _nothing,
        key: str | None = None,
    ) -> None:
        self._plan, self._start, self._strike = plan, start, strike
        self._said = Said()
        self._go = asyncio.Event()
        self._old, *self._comers = self._sockets = [
            Socket(url, self._said, key) for _ in range(1 + len(plan.offsets))
        ]

    async def run(self) -> Verdict:
        """Raises nothing for a race that goes wrong."""
        verdict = Verdict(self._plan)
        try:
            async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as tasks:
                await self._begin(tasks)
                if self._old.ready is None:
                    verdict.faults.append("the server takes nobody")
                else:
                    await self._come(tasks, self._old.ready)
                    await self._happen()
                    await self._settle()
                    self._judge(verdict)
                    await self._leave(verdict)
        except TimeoutError:
            verdict.faults.append("it hangs")
        verdict.faults += [fault for socket in self._sockets for fault in socket.faults]
        verdict.ends = [socket.told for socket in self._sockets]
        return verdict

    async def _begin(self, tasks: asyncio.TaskGroup) -> None:
        """The client speaks, and has heard the first of it."""
        now = asyncio.Event()
        now.set()
        self._said.say(*map(m.Text, self._plan.pieces[: self._plan.early]), m.Flush())
        tasks.create_task(self._old.run(now, 0.0, None))
        await self._old.heard.wait()
        await asyncio.sleep(self._plan.wait)
        if self._plan.kind is Kind.END:
            self._say_rest()
            await self._old.final.wait()
            await asyncio.sleep(3.0 * self._plan.wait)  # `done` comes within that or a little later

    def _say_rest(self) -> None:
        self._said.say(*map(m.Text, self._plan.pieces[self._plan.early :]), m.End())

    async def _come(self, tasks: asyncio.TaskGroup, ready: m.Ready) -> None:
        """Those who will want the session; what they show is what the client knows now."""
        if self._plan.old is Old.SILENT:
            self._old.freeze()
        origin = m.ResumeFrom(ready.session, ready.token, self._old.at)
        if self._plan.kind in CHAINED:
            tasks.create_task(self._one_by_one(origin))
            return
        for comer, offset in zip(self._comers, self._plan.offsets, strict=True):
            runs = comer.run(self._go, offset, origin)
            tasks.create_task(runs if self._plan.shaken else self._later(runs))
            if self._plan.shaken:
                await comer.shaken.wait()

    async def _later(self, runs: Coroutine[Any, Any, None]) -> None:
        await self._go.wait()
        await runs

    async def _one_by_one(self, origin: m.ResumeFrom) -> None:
        await self._go.wait()
        async with asyncio.TaskGroup() as tasks:
            for comer, offset in zip(self._comers, self._plan.offsets, strict=True):
                tasks.create_task(comer.run(self._go, offset, origin))
                await comer.settled.wait()
                if comer.ready is not None:
                    origin = m.ResumeFrom(comer.ready.session, comer.ready.token, comer.at)

    async def _happen(self) -> None:
        await self._start()
        if self._plan.old is Old.CUT:
            self._old.cut()
        self._go.set()
        if self._plan.kind is not Kind.END:
            self._say_rest()
        await asyncio.sleep(self._plan.late)
        await self._strike()
        if self._plan.kind is Kind.CLOSE:
            await self._old.say_alone(m.CloseSession())
        for comer in self._comers:
            await comer.settled.wait()

    async def _settle(self) -> None:
        """Until at most one is left, and has heard all."""
        while True:
            left = [each for each in self._sockets if each.open and not self._frozen(each)]
            if not left or (len(left) == 1 and self._has_all(left[0]) and not self._ends):
                break
            await asyncio.sleep(LOOK)

    @property
    def _ends(self) -> bool:
        """Whether the server hangs up on everybody."""
        return self._plan.kind in (Kind.REVOKED, Kind.DRAIN)

    def _has_all(self, socket: Socket) -> bool:
        """Whether nothing more of the text will come over it.

        The text's end may have come over another before this one asked, which then asks for what
        comes after the end: by the session it has all, though it never sees an end itself.
        """
        endings = [each.ending for each in self._sockets if each.ending is not None]
        return bool(endings) and socket.at >= endings[0].seq

    async def _leave(self, verdict: Verdict) -> None:
        if self._plan.old is Old.SILENT:
            self._old.cut()
        self._said.say(m.CloseSession())
        for winner in [socket for socket in self._sockets if socket.open]:
            while winner.code is None:
                await asyncio.sleep(LOOK)
            if winner.code != NORMAL and winner is not self._old:
                verdict.faults.append(f"close was answered with {winner.code}")

    # -- what came of it ----------------------------------------------------------------------

    def _judge(self, verdict: Verdict) -> None:
        audio: dict[int, m.Audio] = {}
        frames: dict[int, bytes] = {}
        for socket in self._sockets:
            audio |= socket.audio
            for seq, frame in socket.frames.items():
                if frames.setdefault(seq, frame) != frame:
                    verdict.faults.append(f"message {seq} differs from the first time")
        if sorted(frames) != list(range(1, len(frames) + 1)):
            verdict.faults.append("messages are missing")
        verdict.whole = self._compare([audio[seq] for seq in sorted(audio)], verdict)
        winners = [socket for socket in self._sockets if self._has_won(socket)]
        verdict.won = len(winners)
        for socket in self._comers:
            if socket not in winners:
                self._judge_loser(socket, verdict)
        self._judge_outcome(winners, verdict)

    def _compare(self, audio: Sequence[m.Audio], verdict: Verdict) -> bool:
        wanted, came = sound(self._plan.text).tobytes(), b"".join(each.data for each in audio)
        position = 0
        for each in audio:
            if each.position != position:
                verdict.faults.append(f"sound at {each.position} came after {position}")
            position = each.position + each.samples
        if hashlib.sha256(came).digest() != hashlib.sha256(wanted[: len(came)]).digest():
            verdict.faults.append("this is another sound")
        return len(came) == len(wanted)

    def _has_won(self, socket: Socket) -> bool:
        if self._plan.kind is Kind.DRAIN:
            done = any(isinstance(each.ending, m.Done) for each in self._sockets)
            heard = done and self._has_all(socket)
            return socket.code == RESTART and socket.ready is not None and heard
        return socket.open and socket.ready is not None and not self._frozen(socket)

    def _frozen(self, socket: Socket) -> bool:
        return socket is self._old and self._plan.old is Old.SILENT

    def _judge_loser(self, socket: Socket, verdict: Verdict) -> None:
        kind = self._plan.kind
        if socket.refused:
            good = socket.refused in STATUS.get(kind, ())
        elif socket.ready is not None:
            good = socket.code in ENDS.get(kind, LOST) and socket.code != RESUME_FAILED
        else:
            good = socket.code in ENDS.get(kind, LOST) and socket.code != TAKEN_OVER
        if not good:
            verdict.faults.append(f"one that lost: {socket.told}")
        if socket.code == RESUME_FAILED:
            error = socket.error
            if error is None or error.code != "resume_failed" or error.recovered is not False:
                verdict.faults.append(f"one that was refused was told {error}")

    def _judge_outcome(self, winners: Sequence[Socket], verdict: Verdict) -> None:
        old, kind = self._old, self._plan.kind
        may_end = kind in (Kind.CLOSE, Kind.GRACE)
        wanted = 0 if kind is Kind.REVOKED else 1
        if len(winners) != wanted and not (may_end and not winners):
            verdict.faults.append(f"{len(winners)} have the session")
        if winners and not verdict.whole:
            verdict.faults.append("sound is missing")
        if kind is Kind.NEWEST and winners != self._comers[-1:]:
            verdict.faults.append("it is not the newest that has it")
        if self._plan.old is Old.ALIVE and old not in winners:
            ended = kind is Kind.CLOSE and not winners
            codes = (NORMAL,) if ended else ENDS.get(kind, (TAKEN_OVER,))
            if old.code not in codes:
                verdict.faults.append(f"the old socket: {old.told}")
        if may_end and not winners:
            self._judge_end(verdict)

    def _judge_end(self, verdict: Verdict) -> None:
        """The session has ended; whoever asks for it with its token is told how far it got."""
        for comer in self._comers:
            error = comer.error
            if comer.code != RESUME_FAILED or error is None:
                continue
            told = (error.heard_text or "") + (error.unheard_text or "")
            if error.reason == "ended" and not self._plan.text.startswith(told):
                verdict.faults.append(f"the ended session tells of another text: {told}")
            if error.reason not in ("ended", "unknown"):
                verdict.faults.append(f"the ended session is {error.reason}")


async def left(url: str) -> dict[str, float]:
    """What the server of ``url`` still counts of sessions, connections and utterances."""
    parts = urlsplit(url)

    def ask() -> str:
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()

    lines = [line.split() for line in (await asyncio.to_thread(ask)).splitlines()]
    return {line[0]: float(line[1]) for line in lines if line and line[0] in LEFT}


async def nothing_left(url: str) -> None:
    """Wait until the server has let go of everything. Raises ``TimeoutError`` with the rest."""
    for _ in range(int(PATIENCE / 0.05)):
        found = await left(url)
        if len(found) == len(LEFT) and not any(found.values()):
            return
        await asyncio.sleep(0.05)
    raise TimeoutError(f"left behind: {found}")
