"""A session under test, with literal times and what it asked for as plain lists."""

import itertools
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from playhead.codecs.base import Encoded
from playhead.codecs.registry import Format, UnsupportedCodec, UnsupportedRate
from playhead.engine.types import (
    AudioChunk,
    Finish,
    Finished,
    Lane,
    ListenerState,
    Word,
)
from playhead.gateway import messages as m
from playhead.gateway.effects import Effect, Send, Submit
from playhead.gateway.limits import Limits
from playhead.gateway.session import ServerFacts, Session

RATE = 24_000
E = TypeVar("E")


def open_format(codec: str, sample_rate: int) -> Format:
    if codec == "morse":
        raise UnsupportedCodec("codec 'morse' is not known; use one of pcm_s16le")
    if sample_rate == 44_100:
        raise UnsupportedRate("pcm_s16le does not run at 44100 Hz; use one of 24000")
    return Format(codec, sample_rate, 0, 0)


def facts(limits: Limits | None = None) -> ServerFacts:
    return ServerFacts(
        model="fake",
        server="playhead/test",
        voices=("ada", "bob"),
        default_voice="ada",
        languages=("auto", "german"),
        takes_instruct=True,
        model_rate=RATE,
        formats=({"codec": "pcm_s16le", "sample_rates": [RATE]},),
        open_format=open_format,
        new_utterance=itertools.count(101).__next__,
        limits=limits or Limits(),
    )


def of(kind: type[E], effects: Iterable[Effect]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def sent(effects: Iterable[Effect]) -> list[m.ServerMessage]:
    return [effect.message for effect in effects if isinstance(effect, Send)]


def words(*placed: tuple[str, int, int]) -> tuple[Word, ...]:
    """(text, first sample, offset in the text)."""
    return tuple(Word(text, start, at, at + len(text)) for text, start, at in placed)


def chunk(number: int, start: int, samples: int, placed: tuple[Word, ...] = ()) -> AudioChunk:
    return AudioChunk(
        number, 0, start, np.zeros(samples, np.float32), placed, Lane.URGENT, 0.25, 0.5
    )


class Talk:
    """A session after ``hello`` at 0 s. ``say`` and the like return the effects."""

    def __init__(self, limits: Limits | None = None, *, greet: bool = True, **hello: Any) -> None:
        self.session = Session(facts(limits), session="s1", token="t1", client="carol", now=0.0)
        self.ready: m.Ready | None = None
        self.total = 0  # samples of the current utterance so far
        if greet:
            (ready,) = sent(self.say(m.Hello(**hello)))
            assert isinstance(ready, m.Ready)
            self.ready = ready

    def say(self, message: m.ClientMessage, now: float = 0.0) -> list[Effect]:
        return self.session.receive(message, now)

    def utter(self, text: str, now: float = 0.0) -> int:
        """A whole text; its engine number."""
        effects = self.say(m.Text(text), now)
        self.say(m.End(), now)
        self.total = 0
        submitted = of(Submit, effects)
        return submitted[0].request.utterance if submitted else 0

    def audio(
        self,
        number: int,
        samples: int,
        now: float = 0.0,
        placed: tuple[Word, ...] = (),
        *,
        final: bool = False,
    ) -> list[Effect]:
        made = None if final and not samples else chunk(number, self.total, samples, placed)
        self.total += samples
        encoded = Encoded(bytes(2 * samples), samples)
        return self.session.audio(number, encoded, made, final, now)

    def complete(
        self, number: int, now: float = 0.0, reason: Finish = Finish.COMPLETE
    ) -> list[Effect]:
        effects = self.audio(number, 0, now, final=True)
        return effects + self.session.engine_event(Finished(number, reason, self.total), now)

    def report(
        self,
        epoch: int,
        received: int,
        consumed: int,
        now: float = 0.0,
        state: ListenerState = ListenerState.PLAYING,
        **fields: Any,
    ) -> list[Effect]:
        given = {
            "heard": consumed,
            "buffered": received - consumed - fields.get("discarded", 0),
            "time": now * 1_000,
            **fields,
        }
        return self.say(
            m.PlaybackReport(
                epoch=epoch, received=received, consumed=consumed, state=state, **given
            ),
            now,
        )
