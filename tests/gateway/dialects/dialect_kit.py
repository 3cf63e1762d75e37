"""A dialect under test with a session behind it: literal frames in, literal frames out.

The sessions are real, the engine is played by the test: ``speak`` gives an utterance audio.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from playhead.codecs import registry as codecs
from playhead.codecs.base import Encoded
from playhead.engine.types import AudioChunk, Finish, Finished, Lane, Report, TextWarning, Word
from playhead.gateway.access_offer import Offer
from playhead.gateway.dialects.base import (
    Action,
    Dialect,
    Frame,
    Hangup,
    Native,
    Opening,
    Show,
)
from playhead.gateway.effects import (
    CancelUtterance,
    Close,
    Effect,
    ForwardReport,
    PushText,
    Send,
    Submit,
)
from playhead.gateway.limits import Limits
from playhead.gateway.messages import Audio, Hello, Ready
from playhead.gateway.session import ServerFacts, Session

RATE = 24_000


def facts(**limits: Any) -> ServerFacts:
    numbers = iter(range(101, 10_000))
    return ServerFacts(
        model="fake-1",
        server="playhead test",
        voices=("alto", "tenor"),
        default_voice="alto",
        model_rate=RATE,
        formats=tuple(dict(found) for found in codecs.formats()),
        open_format=codecs.open_format,
        new_utterance=numbers.__next__,
        limits=Limits(**{"grace": 0.0, **limits}),
        continuous=True,
    )


def opening(query: str = "", **headers: str) -> Opening:
    pairs = dict(part.split("=", 1) for part in query.split("&") if part)
    return Opening("/", pairs, {name.replace("_", "-"): v for name, v in headers.items()})


class Call:
    """One connection. ``sent`` and ``closed`` are what the client has got so far."""

    def __init__(self, dialect: Dialect, known: ServerFacts) -> None:
        self.dialect = dialect
        self.facts = known
        self.now = 0.0
        self.sessions: dict[str, Session] = {}
        self.all: list[Any] = []  # text frames decoded, binary frames as they are
        self.closed: tuple[int, str] | None = None
        self.shown: list[Offer] = []  # keys and tickets in messages
        self.ready: list[Ready] = []
        self.submitted: list[Any] = []
        self.pushed: list[PushText] = []
        self.cancelled: list[int] = []
        self.reports: list[Report] = []  # as the engine gets them
        self._owner: dict[int, str] = {}  # engine utterance to context
        self._made: dict[int, int] = {}
        self._waiting: list[Action] = []
        self._perform(dialect.opened(self.now))

    # -- the client ---------------------------------------------------------------------------

    def send(self, *messages: Any, at: float | None = None) -> list[Any]:
        """Frames of the client (maps become JSON); the frames that they were answered with."""
        self.now = self.now if at is None else at
        before = len(self.all)
        for message in messages:
            frame = json.dumps(message) if isinstance(message, dict) else message
            self._perform(self.dialect.receive(frame, self.now))
        return self.all[before:]

    def wait(self, at: float) -> list[Any]:
        """Time passes, timers of the dialect and of its sessions included."""
        before = len(self.all)
        self.now = at
        due = self.dialect.get_timer()
        if due is not None and due <= at:
            self._perform(self.dialect.handle_timer(at))
        for context, session in list(self.sessions.items()):
            self._effects(context, session.handle_timer(at))
            self._perform([])
        return self.all[before:]

    # -- the engine ---------------------------------------------------------------------------

    @property
    def number(self) -> int:
        """The engine's number of the latest utterance."""
        return int(self.submitted[-1].utterance)

    def speak(
        self,
        samples: int,
        *,
        number: int | None = None,
        words: Sequence[tuple[str, int, int]] = (),
        byte: int = 1,
    ) -> list[Any]:
        """The engine makes ``samples`` at 24 kHz. ``words``: (text, first sample, offset)."""
        number = number or self.number
        before = len(self.all)
        placed = tuple(Word(text, start, at, at + len(text)) for text, start, at in words)
        start = self._made.get(number, 0)
        self._made[number] = start + samples
        pcm = np.zeros(samples, np.float32)
        chunk = AudioChunk(number, 0, start, pcm, placed, Lane.URGENT, 0.25, 0.5)
        width = 1 if self.ready[-1].codec in ("mulaw", "alaw") else 2
        self._audio(number, Encoded(bytes([byte]) * width * samples, samples), chunk, final=False)
        return self.all[before:]

    def finish(
        self, number: int | None = None, reason: Finish = Finish.COMPLETE, **fault: Any
    ) -> list[Any]:
        """The engine is done with an utterance."""
        number = number or self.number
        before = len(self.all)
        if reason in (Finish.COMPLETE, Finish.LENGTH_BUDGET):
            self._audio(number, Encoded(b"", 0), None, final=True)
        context = self._owner[number]
        ended = Finished(number, reason, self._made.get(number, 0), **fault)
        session = self.sessions.get(context)  # gone, when the dialect has ended it with its audio
        if session is not None:
            self._effects(context, session.engine_event(ended, self.now))
            self._perform([])
        return self.all[before:]

    def warn(self, code: str, message: str) -> list[Any]:
        """The engine warns of the latest utterance's text."""
        before = len(self.all)
        context = self._owner[self.number]
        warning = TextWarning(self.number, code, message, "")
        self._effects(context, self.sessions[context].engine_event(warning, self.now))
        self._perform([])
        return self.all[before:]

    @property
    def text(self) -> str:
        """All that the engine was given to speak."""
        return "".join(piece.delta for piece in self.pushed)

    def stop(self, code: int = 1001) -> None:
        """The server goes down."""
        for context, session in list(self.sessions.items()):
            self._effects(context, session.stop(code, "server is shutting down", self.now))
        self._perform([])

    # -- inside -------------------------------------------------------------------------------

    def _audio(self, number: int, encoded: Encoded, chunk: AudioChunk | None, final: bool) -> None:
        context = self._owner[number]
        session = self.sessions.get(context)
        if session is not None:
            self._effects(context, session.audio(number, encoded, chunk, final, self.now))
            self._perform([])

    def _perform(self, actions: Sequence[Action]) -> None:
        self._waiting += actions
        while self._waiting:
            action = self._waiting.pop(0)
            if isinstance(action, Frame):
                assert self.closed is None, "a frame after the close"
                data = action.data
                self.all.append(json.loads(data) if isinstance(data, str) else data)
            elif isinstance(action, Show):
                assert not self.sessions, "a key must come before what it is for"
                self.shown.append(action.offer)
            elif isinstance(action, Hangup):
                self.closed = (action.code, action.reason)
                self._waiting.clear()
                for context, session in list(self.sessions.items()):
                    self._effects(context, session.detach(self.now))
            else:
                self._native(action)

    def _native(self, action: Native) -> None:
        session = self.sessions.get(action.context)
        if session is None and isinstance(action.message, Hello):
            session = Session(replace(self.facts), session="s", token="t", client="c", now=self.now)
            self.sessions[action.context] = session
        if session is not None:
            self._effects(action.context, session.receive(action.message, self.now))

    def _effects(self, context: str, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(message):
                    if isinstance(message, Ready):
                        self.ready.append(message)
                    self._waiting += self.dialect.tell(context, message, self.now)
                case Close(code, reason):
                    self.sessions.pop(context, None)
                    self._waiting += self.dialect.ended(context, code, reason, self.now)
                case Submit(request):
                    self.submitted.append(request)
                    self._owner[request.utterance] = context
                case PushText():
                    self.pushed.append(effect)
                case ForwardReport(report):
                    self.reports.append(report)
                case CancelUtterance(number):
                    self.cancelled.append(number)


def types(frames: Sequence[Any]) -> list[Any]:
    """The types of text frames, and ``bytes`` for binary ones."""
    return ["bytes" if isinstance(frame, bytes) else frame.get("type") for frame in frames]


def stray(epoch: int = 99) -> Audio:
    """Audio of an utterance that the dialect has forgotten."""
    return Audio(
        seq=1,
        epoch=epoch,
        index=0,
        position=0,
        samples=1,
        words=(),
        lane=Lane.URGENT,
        slack=None,
        depth=0.0,
        sent=0.0,
        final=False,
        data=b"\0\0",
    )
