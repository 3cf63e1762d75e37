"""What a model says later to what it was asked at once.

A model in another process (``remote/runner_proxy.py``) takes requests and text without making the
engine's thread wait for its word: ``open`` returns, ``push_text`` returns None, and what there is
to say comes as an :class:`Answer` to the engine's thread. Nothing is lost by that: ``steppable``
only ever turns true by text, and a refusal ends an utterance as it would have kept it out.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from playhead.engine.types import RunnerDead, StepResult


@dataclass(frozen=True, slots=True)
class Answer:
    """``steppable``: a backbone step of the utterance would now yield something. ``code``, where
    there is one: it cannot be spoken, and ``message`` says why. ``end``: it has taken the last of
    the utterance's text."""

    utterance: int
    steppable: bool = False
    code: str = ""
    message: str = ""
    end: bool = False


def describe(fault: BaseException) -> str:
    """A fault that is no refusal, for the listener to be told."""
    return f"{type(fault).__name__}: {fault}"


News = Sequence[Answer] | RunnerDead
"""Answers, or that none will ever come again."""

Hear = Callable[[News], None]
"""Takes news on any thread."""


class Relay:
    """Passes news on to whoever listens last: a rehearsal first, then the engine. Any thread."""

    def __init__(self, follow: Callable[[Hear], None]) -> None:
        """``follow`` is handed who hears the model; it is called once."""
        self._lock = threading.Lock()
        self._hear: Hear = unheard
        self._end: RunnerDead | None = None
        follow(self._pass_on)

    def turn_to(self, hear: Hear) -> None:
        """From now on ``hear`` is told; at once, if the model has ended already."""
        with self._lock:
            self._hear = hear
            if self._end is not None:
                hear(self._end)

    def _pass_on(self, news: News) -> None:
        with self._lock:
            if isinstance(news, RunnerDead):
                self._end = news
            self._hear(news)


def unheard(news: News) -> None:
    """Before anybody listens nothing has been asked."""


def unasked(hear: Hear) -> None:
    """For a model in this process, which answers at once."""


class Plain(dict[int, StepResult]):
    """Results of steps that tell of so many ``frames`` and nothing else, by utterance, made when
    first asked for: most are, and a batch has hundreds."""

    def __init__(self, frames: int) -> None:
        super().__init__()
        self._frames = frames

    def __missing__(self, utterance: int) -> StepResult:
        made = StepResult(utterance, self._frames, boundary=False, hungry=False, ended=False)
        self[utterance] = made
        return made
