"""Deepgram Flux, ``/v2/speak``: turns of text, and the only vendor protocol of speech synthesis in
which a client says how far it has played.

A Flush ends a turn, whose audio is between SpeechStarted and SpeechMetadata. ``Interrupt`` with
``playback_offset`` (milliseconds of the session's audio, every interrupt starting the count anew
where it cut) is a playback report and a cancel, and is answered with the text up to there and the
rest. Without an offset the answer rests on the session's own idea of the listener and says so
(``estimated``; the vendor tells no text then). A turn can be interrupted until it has been played,
and before its first sound; turns that wait are dropped with it. ``Configure`` changes the speed of
the turns that begin after it.

Source: developers.deepgram.com, "Flux TTS"; deepgram-sdk 7.17.0, speak/v2.
"""

import math
import re
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from playhead.engine.types import Source
from playhead.gateway.dialects.base import (
    INTERNAL,
    POLICY,
    Action,
    Actions,
    Dialect,
    Frame,
    Hangup,
    Native,
    Opening,
)
from playhead.gateway.dialects.deepgram import (
    NO_CONTROLS,
    Query,
    flux_fatal,
    flux_speed,
    flux_warning,
    read_query,
)
from playhead.gateway.dialects.turns import Turn, Turns
from playhead.gateway.dialects.wire import (
    choice,
    mapping,
    missing,
    number,
    read_object,
    string,
    texts,
    write_object,
)
from playhead.gateway.messages import (
    Audio,
    Cancel,
    Cancelled,
    Done,
    End,
    ErrorEvent,
    Failed,
    ServerMessage,
    Start,
    Started,
    Warn,
)
from playhead.gateway.protocol_parse import ProtocolError
from playhead.gateway.session import ServerFacts

MODELS = re.compile(r"flux-[a-z]+-[a-z]{2}")
CONTEXT = ""
REMEMBERED = 16
"""Turns whose text is kept after their end: a player that started late may still be in them."""
UNSUPPORTED_DATA, TOO_BIG = 1003, 1009
FAULTS = {"text_too_long": ("BIG-0000", TOO_BIG)}


class Flux(Dialect):
    """One session; one utterance per turn. Positions are samples at the wire rate."""

    def __init__(self, query: Query, facts: ServerFacts, request_id: str) -> None:
        self.subprotocol = "token"  # browsers send their secret behind it
        self._query = query
        self._facts = facts
        self._request_id = request_id
        self._rate = query.hello.sample_rate
        self._speed: float | None = None
        self._turns = Turns()
        self._past: deque[Turn] = deque(maxlen=REMEMBERED)  # told to their end
        self._announced: Turn | None = None
        self._total = 0  # audio of the session, as the vendor counts it
        self._cut_at = -1  # where the last interrupt cut
        self._characters = 0
        self._number = 0

    def opened(self, now: float) -> Actions:
        connected = {
            "type": "Connected",
            "request_id": self._request_id,
            "model_name": self._query.model,
            "model_version": self._facts.server,
            "model_uuids": [self._facts.model],
        }
        return [Native(CONTEXT, self._query.hello), Frame(write_object(connected))]

    # ------------------------------------------------------------ from the client

    def receive(self, frame: bytes | str, now: float) -> Actions:
        if isinstance(frame, bytes):
            return flux_fatal("MESSAGE-0000", "only text frames are taken", UNSUPPORTED_DATA)
        try:
            message = read_object(frame)
            name = choice(message, "type", tuple(self._ACTS), "")
            return self._ACTS[name](self, message, now)
        except ProtocolError as fault:
            return flux_fatal("DATA-0000", f"{fault.message}; expected {fault.expected}", POLICY)

    def _speak(self, message: dict[str, Any], now: float) -> list[Action]:
        text = string(message, "text")
        if not text:
            return []
        actions: list[Action] = []
        turn = self._turns.composing
        if turn is None:
            self._number += 1
            turn = self._turns.open(f"dg_sp_{self._number:012x}")
            actions.append(Native(CONTEXT, Start(speed=self._speed, id=turn.name)))
        turn.script.add_text(text)
        self._characters += len(text)
        return actions + [Native(CONTEXT, piece) for piece in texts(text)]

    def _flush(self, message: dict[str, Any], now: float) -> list[Action]:
        turn = self._turns.composing
        if turn is None:
            return [flux_warning("NO_ACTIVE_SPEECH", "there is no text to flush")]
        turn.closed = True
        flushed = Frame(write_object({"type": "Flushed", "speech_id": turn.name}))
        return [Native(CONTEXT, End()), flushed, *self._tell_ends()]

    def _interrupt(self, message: dict[str, Any], now: float) -> list[Action]:
        offset = self._offset(message)
        if offset is not None and offset <= self._cut_at:
            told = f"playback_offset must be beyond {self._ms(self._cut_at)} ms"
            return [flux_warning("INVALID_INTERRUPT_OFFSET", told)]
        turn = self._turn_at(offset)
        if turn is None:
            return [flux_warning("NO_ACTIVE_SPEECH", "nothing is being spoken")]
        if offset is None:
            return [Native(CONTEXT, Cancel())]  # answered when the session says where
        begin = turn.begin if turn.samples else self._total
        return self._cut(turn, max(begin, min(offset, begin + turn.samples)), now)

    def _offset(self, message: dict[str, Any]) -> int | None:
        """The client's position in the session's audio, in samples."""
        if not (given := mapping(message, "playback_offset")):
            return None
        choice(given, "type", ("time_ms",), "time_ms")
        if given.get("value") is None:
            raise missing("playback_offset.value", "milliseconds of session audio")
        return round(number(given, "value", 0, 1e12) * self._rate / 1_000)

    def _turn_at(self, offset: int | None) -> Turn | None:
        """The first turn that was not played to its end by then; None: so far as is known."""
        turns: list[Turn] = [*self._past, *self._turns]
        for turn in turns:
            ends = turn.begin + turn.samples if turn.over else math.inf
            if turn.epoch and not (turn.done if offset is None else offset >= ends):
                return turn
        return None

    def _cut(self, turn: Turn, at: int, now: float) -> list[Action]:
        """Everything from ``turn`` on ends at ``at``."""
        heard = at - turn.begin if turn.samples else 0
        live = [t for t in [*self._past, *self._turns] if t.epoch and not t.done]
        reports = [
            t.report(heard if t is turn else t.samples, Source.OFFSET, now)
            for t in live
            if t.epoch <= turn.epoch
        ]
        spoken, remaining = turn.heard_text(heard)
        answer = self._interrupted(turn, at, {"text_spoken": spoken, "text_remaining": remaining})
        self._forget(at)
        cut = [Native(CONTEXT, report) for report in reports]
        return [*cut, Native(CONTEXT, Cancel(epoch=turn.epoch)), answer]

    def _forget(self, at: int) -> None:
        self._turns.clear()
        self._past.clear()
        self._announced = None
        self._total = self._cut_at = at

    def _configure(self, message: dict[str, Any], now: float) -> list[Action]:
        speed, answer = flux_speed(message)
        self._speed = self._speed if speed is None else speed
        return [answer]

    def _close(self, message: dict[str, Any], now: float) -> list[Action]:
        totals = {
            "type": "SessionMetadata",
            "total_audio_duration_ms": self._ms(self._total),
            "total_input_character_count": self._characters,
            "total_billable_character_count": self._characters,
        }
        return [Frame(write_object(totals)), Hangup(1000, "")]

    # ------------------------------------------------------------ from the session

    def tell(self, context: str, message: ServerMessage, now: float) -> Actions:
        match message:
            case Started(epoch=epoch):
                self._turns.started(epoch)
                return self._announce()
            case Audio():
                return self._audio(message)
            case Done(epoch=epoch):
                for turn in [*self._past, *self._turns]:
                    turn.done = turn.done or turn.epoch == epoch
            case Cancelled():
                return self._cancelled(message)
            case Failed() | ErrorEvent():
                code, close = FAULTS.get(message.code, ("NET-0000", INTERNAL))
                text = f"{message.code}: {message.message}; expected {message.expected}"
                return flux_fatal(code, text, close)
            case Warn(code=code, message=text):
                return [flux_warning(code.upper(), text)]
        return []

    def _audio(self, message: Audio) -> list[Action]:
        turn = self._turns.find(message.epoch)
        if turn is None:
            return []
        if not turn.samples:
            turn.begin = self._total
        turn.samples += message.samples
        turn.script.add_words(message.words)
        turn.over = message.final
        self._total += message.samples
        actions: list[Action] = [Frame(message.data)] if message.data else []
        return actions + self._tell_ends()

    def _cancelled(self, message: Cancelled) -> list[Action]:
        """Of an interrupt without an offset: the first is the one that was playing."""
        everyone = [*self._past, *self._turns]
        turn = next((t for t in everyone if t.epoch == message.epoch), None)
        if turn is None:
            return []
        extra = {"text_spoken": message.heard_text, "text_remaining": message.unheard_text}
        at = turn.begin + message.heard if turn.samples else self._total
        answer = self._interrupted(turn, at, {**extra, "estimated": message.estimated})
        self._forget(at)
        return [answer]

    # ------------------------------------------------------------ to the client

    def _announce(self) -> list[Action]:
        turn = self._turns.oldest
        if turn is None or turn is self._announced or not turn.epoch:
            return []
        self._announced = turn
        return [Frame(write_object({"type": "SpeechStarted", "speech_id": turn.name}))]

    def _tell_ends(self) -> list[Action]:
        actions: list[Action] = []
        for turn in self._turns.pop_ended():
            if not turn.samples:
                actions.append(flux_warning("NO_SYNTHESIZABLE_TEXT", "the turn has no sound"))
            metadata = {"type": "SpeechMetadata", **self._metadata(turn)}
            actions += [Frame(write_object(metadata)), *self._announce()]
            self._past.append(turn)
        return actions

    def _interrupted(self, turn: Turn, at: int, more: dict[str, Any]) -> Frame:
        told = {"type": "SpeechInterrupted", "audio_played_ms": self._ms(at), **more}
        return Frame(write_object({**told, "metadata": self._metadata(turn)}))

    def _metadata(self, turn: Turn) -> dict[str, Any]:
        return {
            "speech_id": turn.name,
            "audio_duration_ms": self._ms(turn.samples),
            "input_character_count": turn.script.length,
            "billable_character_count": turn.script.length,
            "controls_applied": NO_CONTROLS,
        }

    def _ms(self, samples: int) -> int:
        return samples * 1_000 // self._rate

    _ACTS: ClassVar[dict[str, Callable[["Flux", dict[str, Any], float], list[Action]]]] = {
        "Speak": _speak,
        "Flush": _flush,
        "Interrupt": _interrupt,
        "Configure": _configure,
        "Close": _close,
    }


def open_flux(opening: Opening, facts: ServerFacts, request_id: str) -> Flux:
    """Raises ``Refused`` for a query that cannot be served; the model must be named."""
    return Flux(read_query(opening, facts, MODELS, None), facts, request_id)
