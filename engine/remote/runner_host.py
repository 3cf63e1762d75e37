"""The model's process: owns the real runner, with a thread for each lane and one for the rest.

It is started by an engine's process (``runner_proxy.py``) and has no life of its own: signals do
not end it, the engine's end does, however that came about.
"""

import faulthandler
import logging
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from playhead.engine import conform, garbage
from playhead.engine.answers import Answer, describe
from playhead.engine.policy import LaneLimits
from playhead.engine.progress import Tell
from playhead.engine.remote import runner_batches as batches
from playhead.engine.remote import runner_wire as wire
from playhead.engine.remote.runner_lines import LANES, Hangup, LaneLine, frames
from playhead.engine.types import Lane, ModelCounts, Pcm, Request, Runner

log: Final = logging.getLogger(__name__)

ENDS_WITHIN: Final = 20.0
"""Seconds that this process may still take once its engine is gone: letting go of a device takes
some. One that hangs would keep it for ever, and its memory with it."""

_NOTHING: Final = wire.encode([])[4:]

REFUSED: Final = 1
"""Exit status where the model could not be loaded; why has been told."""


class CannotHost(RuntimeError):
    """The model cannot be loaded; the message says why and what would help."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """A model that is ready."""

    runner: Runner
    limits: LaneLimits
    counts: Callable[[], ModelCounts] = ModelCounts


def host(descriptors: Sequence[int], load: Callable[[bytes, Tell], Hosted]) -> int:
    """Be the process of the model that ``load`` makes of the engine's settings. Returns the exit
    status, once the engine has gone. ``load`` raises :class:`CannotHost`."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    control, *lanes = (socket.socket(fileno=descriptor) for descriptor in descriptors)
    for sock in (control, *lanes):
        sock.set_inheritable(False)
    ending = _Ending(control)
    coming = frames(control)
    for begin in wire.from_engine(next(coming, [_NOTHING])[0]):
        assert isinstance(begin, wire.Begin)
        try:
            hosted = load(begin.settings, _teller(control))
        except CannotHost as error:
            _say(control, [wire.Refused(str(error))])
            return REFUSED
        ending.loaded()
        _say(control, [wire.Ready(hosted.runner.info, hosted.limits)])
        served = RunnerHost(hosted, control)
        served.start([LaneLine(sock) for sock in lanes])
        for found in coming:
            served.take([message for frame in found for message in wire.from_engine(frame)])
    return 0


def _say(control: socket.socket, messages: Sequence[wire.FromModel]) -> None:
    try:
        control.sendall(wire.encode(messages))
    except OSError:
        log.warning("the engine does not hear its model any more")


def _teller(control: socket.socket) -> Tell:
    return lambda stage, done: _say(control, [wire.Loading(stage, done)])


class _Ending:
    """Sees to it that this process, a group of its own, ends when its engine has: at once while it
    is loading, and in any case within ``ENDS_WITHIN``."""

    def __init__(self, control: socket.socket) -> None:
        self._loading = True
        self._descriptor = control.fileno()
        threading.Thread(target=self._watch, name="playhead-ending", daemon=True).start()

    def loaded(self) -> None:
        """The main thread hears by itself from now on."""
        self._loading = False

    def _watch(self) -> None:
        hangup = select.poll()
        hangup.register(self._descriptor, 0)
        hangup.poll()
        if self._loading and os.getpgrp() == os.getpid():
            # With those that compile kernels for us: they would wait for more for ever.
            os.killpg(os.getpid(), signal.SIGKILL)
        # In a thread of its own that needs no interpreter, which may be stuck by then.
        faulthandler.dump_traceback_later(ENDS_WITHIN, exit=True)


class RunnerHost:
    """Does what the engine asks of a model: requests and texts on the thread that calls
    :meth:`take`, each lane's work on a thread of its own."""

    def __init__(self, hosted: Hosted, control: socket.socket) -> None:
        self._runner = hosted.runner
        self._counts = hosted.counts
        self._control = control
        self._open: set[int] = set()
        self._taken = 0  # requests and texts
        self._told = 0  # of them, to the engine
        self._info = hosted.runner.info
        self._answers = batches.StepAnswers(self._info.step_frames)
        self._garbage = garbage.Keeper(lambda: len(self._open), lambda: bool(self._open))

    def start(self, lines: Sequence[LaneLine]) -> None:
        """Serve the lanes' lines, in the order of ``LANES``."""
        for lane, line in zip(LANES, lines, strict=True):
            threading.Thread(
                target=self._serve, args=(lane, line), name=f"playhead-{lane}", daemon=True
            ).start()

    def take(self, messages: Sequence[wire.FromEngine]) -> None:
        """Do what has come, in its order, and answer at once."""
        answers = []
        for message in messages:
            if (answer := self._take(message)) is not None:
                answers.append(answer)
            self._taken += not isinstance(message, wire.Close)
        if answers or self._taken > self._told:
            self._told = self._taken
            _say(self._control, [wire.Answered(answers, self._taken)])
        self._garbage.look()

    def _take(self, message: wire.FromEngine) -> Answer | None:
        match message:
            case wire.Open(request):
                return self._enter(request)
            case wire.Text(utterance, delta, flush, end) if utterance in self._open:
                return self._text(utterance, delta, flush, end)
            case wire.Close(utterance) if utterance in self._open:
                self._leave(utterance)
        return None  # of an utterance that was refused, and that has been said

    def _enter(self, request: Request) -> Answer | None:
        try:
            self._runner.open(request)
        except ValueError as fault:
            return Answer(request.utterance, code="bad_value", message=str(fault))
        except Exception as fault:
            # A fault of the model with one request must not stop the others.
            log.exception("the model cannot open utterance %d", request.utterance)
            return Answer(request.utterance, code="engine_error", message=describe(fault))
        self._open.add(request.utterance)
        return None

    def _text(self, utterance: int, delta: str, flush: bool, end: bool) -> Answer | None:
        try:
            steppable = self._runner.push_text(utterance, delta, flush=flush, end=end)
        except ValueError as fault:
            return Answer(utterance, code="bad_value", message=str(fault))
        except Exception as fault:
            # A text that breaks the model's front end costs its own utterance, nobody else's.
            log.exception("the model cannot take the text of utterance %d", utterance)
            return Answer(utterance, code="engine_error", message=describe(fault))
        return Answer(utterance, bool(steppable), end=end) if steppable or end else None

    def _leave(self, utterance: int) -> None:
        self._open.discard(utterance)
        self._answers.close(utterance)
        try:
            self._runner.close(utterance)
        except Exception:
            # Its listener has its terminal event; what leaks is the model's to find.
            log.exception("the model cannot close utterance %d", utterance)

    def _serve(self, lane: Lane, line: LaneLine) -> None:
        try:
            while True:
                line.send(*self._do(lane, line.hear()))
        except Hangup:
            return

    def _do(self, lane: Lane, work: wire.Work) -> tuple[wire.Done, Sequence[Pcm]]:
        try:
            if isinstance(work, wire.Step):
                results = self._runner.step(work.utterances)
                return self._answers.pack(work.utterances, results, self._counts()), ()
            made = self._runner.decode(work.chunks)
            return batches.decoded(conform.decoded(work.chunks, made, self._info.frame_samples))
        except Exception as fault:
            # Top of the lane's thread. What gets here broke the whole batch, and only that, unless
            # it is the device's end: the engine tells them apart.
            log.exception("a %s batch failed", lane)
            return wire.Failed(batches.fault_of(fault)), ()
