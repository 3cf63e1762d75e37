"""A turn that is carried by callbacks: what arrived goes before what the clock says."""

import asyncio

from loadgen_kit import audio, done, record, started
from machine import PATIENCE
from playhead.engine.clock import monotonic
from playhead.gateway.messages import Cancel, ServerMessage
from playhead.loadgen.drive import Drive
from playhead.loadgen.habits import Habits
from playhead.loadgen.reporting import Link
from playhead.loadgen.turn import Turn


class Connection:
    """Holds messages back until it is polled, as a socket does while the loop is busy."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.said: list[str] = []
        self.arrived: list[tuple[ServerMessage, float]] = []
        self.drive = Drive(turn, lambda each: self.said.extend(m.type for m in each), self.poll)

    def poll(self) -> None:
        now = monotonic()
        waiting, self.arrived = self.arrived, []
        for message, at in waiting:
            self.drive.say(self.turn.take(message, 100, at))
        self.drive.settled(now)


def made(timeout: float = PATIENCE, **habits: float) -> Turn:
    origin = monotonic()
    return Turn(record(), Habits(**habits), Link(), origin=origin, deadline=origin + timeout)


def test_audio_that_was_there_is_no_stall_however_late_it_is_read() -> None:
    async def run() -> None:
        turn = made()
        connection = Connection(turn)
        connection.drive.start()
        begin = monotonic()
        connection.arrived = [(started(), begin), (audio(0, 100), begin)]
        connection.poll()
        connection.arrived = [(audio(100, 200, final=True), begin + 0.05)]
        while not turn.played:  # the next report, at 0.25 s, is what makes it look
            assert monotonic() < begin + PATIENCE
            await asyncio.sleep(0.02)
        connection.arrived = [(done(300), monotonic())]
        connection.poll()
        await connection.drive.ended()
        assert (turn.record.finish, turn.record.fault) == ("complete", "")
        assert turn.record.stalls == []
        assert connection.said[:2] == ["text", "end"]
        assert "report" in connection.said

    asyncio.run(run())


def test_a_turn_that_gets_no_answer_ends_itself() -> None:
    async def run() -> None:
        turn = made(timeout=0.05)
        connection = Connection(turn)
        connection.drive.start()
        await connection.drive.ended()
        await connection.drive.ended()
        assert turn.record.fault == "timeout"
        assert connection.said[-1] == Cancel.type

    asyncio.run(run())
