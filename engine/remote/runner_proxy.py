"""A model in a process of its own, as the engine's process sees it: one more ``Runner``.

What the lanes ask waits for its answer on a line per lane. What the engine's thread asks does not
wait: requests and texts go out in order, and what there is to say of them comes back to it as
:class:`~playhead.engine.answers.Answer`. Nothing overtakes: a stream is first stepped after a text
of it has been answered, and closed when nothing of it runs.
"""

import contextlib
import logging
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from typing import Final

from playhead.engine import clock
from playhead.engine.answers import Hear
from playhead.engine.policy import LaneLimits
from playhead.engine.progress import Tell, quiet
from playhead.engine.remote import runner_batches as batches
from playhead.engine.remote import runner_wire as wire
from playhead.engine.remote.runner_lines import (
    LANES,
    Hangup,
    LaneLine,
    frames,
    hang_up,
    pairs,
)
from playhead.engine.remote.wire import WireError
from playhead.engine.types import (
    ChunkWork,
    Lane,
    ModelCounts,
    ModelInfo,
    Pcm,
    Request,
    RunnerDead,
    StepResult,
)

log: Final = logging.getLogger(__name__)

KNOWN_WITHIN: Final = 0.5
"""Seconds from a process's last word to its exit status."""
TAKEN_WITHIN: Final = 0.5
"""Seconds in which the model's process takes the last request or text."""
TICK: Final = 0.01
ENDS_WITHIN: Final = 25.0
"""Seconds for which the model's process may let go of its device. It ends itself before."""


class CannotStart(RuntimeError):
    """The model's process did not become ready. The message is its word, or says how it ended."""


def start(program: Sequence[str], settings: bytes, tell: Tell = quiet) -> "RunnerProxy":
    """Start ``program`` with the descriptors of its lines as last argument, have it load the model
    that ``settings`` name, and wait until that is ready. Raises :class:`CannotStart`."""
    ours, theirs = pairs()
    descriptors = [sock.fileno() for sock in theirs]
    process = subprocess.Popen(
        [*program, ",".join(map(str, descriptors))],
        pass_fds=descriptors,
        start_new_session=True,  # the terminal's Ctrl-C is for the engine
    )
    for sock in theirs:
        sock.close()
    control, *lanes = ours
    coming = frames(control)
    try:
        with contextlib.suppress(OSError):  # then it has ended, and says so below
            control.sendall(wire.encode([wire.Begin(settings)]))
        ready = _loaded(coming, tell)
    except BaseException:
        for sock in ours:
            hang_up(sock)
        process.wait()
        raise
    if ready is None:
        raise CannotStart(f"its process {_end_of(process)} while it was loading")
    return RunnerProxy(process, control, coming, lanes, ready)


def _loaded(coming: Iterator[list[bytes]], tell: Tell) -> wire.Ready | None:
    """Its word that it is ready; None: it has gone without one."""
    for message in _messages(coming):
        if isinstance(message, wire.Ready):
            return message
        if isinstance(message, wire.Refused):
            raise CannotStart(message.why)
        if isinstance(message, wire.Loading):
            tell(message.stage, message.done)
    return None


def _messages(coming: Iterator[list[bytes]]) -> Iterator[wire.FromModel]:
    for found in coming:
        for frame in found:
            yield from wire.from_model(frame)


class RunnerProxy:
    """See ``Runner``. A lane's line takes one dispatch at a time; others wait."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        control: socket.socket,
        coming: Iterator[list[bytes]],
        lanes: Sequence[socket.socket],
        ready: wire.Ready,
    ) -> None:
        self.info: ModelInfo = ready.info
        self.limits: LaneLimits = ready.limits
        self._process = process
        self._control = control
        self._coming = coming
        self._lines = {lane: LaneLine(sock) for lane, sock in zip(LANES, lanes, strict=True)}
        self._turns = {lane: threading.Lock() for lane in LANES}
        self._results = batches.StepResults()
        self._counts = ModelCounts()
        self._ending = False
        self._said = 0  # requests and texts, which are to be taken by the other side
        self._taken = 0

    @property
    def pid(self) -> int:
        """Of the model's process."""
        return self._process.pid

    def counts(self) -> ModelCounts:
        """See ``EngineConfig``: as of the last step."""
        return self._counts

    def at_work(self) -> dict[str, int]:
        """Where requests or texts wait to be taken: how many were so far. Any thread."""
        taken = self._taken
        return {"the model's front end": taken} if self._said > taken else {}

    def follow(self, hear: Hear) -> None:
        """Begin to pass on what the model answers, and its end."""
        threading.Thread(
            target=self._listen, args=(hear,), name="playhead-answers", daemon=True
        ).start()

    def end(self) -> None:
        """Let the model's process end, and wait until it has let go of its device: bounded. One
        that is still at work, for which the lanes have not waited, is killed."""
        self._ending = True
        if any(turn.locked() for turn in self._turns.values()) or not self._takes_all():
            log.error("the model's process is at work that does not end, and is killed")
            self._process.kill()
        hang_up(self._control)
        for line in self._lines.values():
            line.close()
        try:
            self._process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            log.critical("the model's process does not end and is killed")
            self._process.kill()
            self._process.wait()

    def _takes_all(self) -> bool:
        """Whether what it was told last is taken soon."""
        for _ in range(round(TAKEN_WITHIN / TICK)):
            if not self.at_work() or self._process.poll() is not None:
                return True
            clock.pause(TICK)
        return False

    # -- Runner, the engine's thread --------------------------------------------------------

    def open(self, request: Request) -> None:
        """Returns at once: a refusal comes later."""
        self._said += 1
        self._say(wire.Open(request))

    def push_text(self, utterance: int, delta: str, *, flush: bool, end: bool) -> None:
        """Returns at once: whether the utterance can be stepped comes later."""
        self._said += 1
        self._say(wire.Text(utterance, delta, flush, end))

    def close(self, utterance: int) -> None:
        """Returns at once."""
        self._results.close(utterance)
        self._say(wire.Close(utterance))

    def _say(self, message: wire.FromEngine) -> None:
        try:
            self._control.sendall(wire.encode([message]))
        except OSError as error:
            raise self._dead() from error

    # -- Runner, the lanes' threads ---------------------------------------------------------

    def step(self, utterances: Sequence[int]) -> list[StepResult]:
        """See ``Runner``. Raises ``RunnerDead`` where the process has ended too."""
        answer, _ = self._ask(Lane.LM, wire.Step(list(utterances)))
        assert isinstance(answer, wire.Stepped)
        self._counts = answer.counts
        return self._results.unpack(utterances, answer)

    def decode(self, chunks: Sequence[ChunkWork]) -> list[Pcm | BaseException]:
        """See ``Runner``: all of one lane. Raises ``RunnerDead``, where the process ended too."""
        answer, sound = self._ask(chunks[0].lane, wire.Decode(list(chunks)))
        assert isinstance(answer, wire.Decoded)
        return batches.shared_out(answer, sound, len(chunks))

    def _ask(self, lane: Lane, work: wire.Work) -> tuple[wire.Done, Pcm]:
        try:
            with self._turns[lane]:
                answer, sound = self._lines[lane].ask(work)
        except Hangup as error:
            raise self._dead() from error
        except WireError as error:
            raise RunnerDead(str(error)) from error
        if isinstance(answer, wire.Failed):
            raise batches.raised(answer.fault)
        return answer, sound

    # -- the thread that listens ------------------------------------------------------------

    def _listen(self, hear: Hear) -> None:
        try:
            for message in _messages(self._coming):
                assert isinstance(message, wire.Answered)
                self._taken = message.taken
                if message.answers:
                    hear(message.answers)
        except WireError as error:
            log.critical("%s", error)
        if not self._ending:
            dead = self._dead()
            log.critical("%s", dead)
            hear(dead)

    def _dead(self) -> RunnerDead:
        return RunnerDead(f"the model's process {_end_of(self._process)}")


def _end_of(process: "subprocess.Popen[bytes]") -> str:
    """How a process went that has fallen silent."""
    try:
        status = process.wait(KNOWN_WITHIN)
    except subprocess.TimeoutExpired:
        return "has fallen silent"
    if status >= 0:
        return f"ended with status {status}"
    return f"was ended by {signal.Signals(-status).name}"
