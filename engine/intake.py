"""Utterances on their way into the model and the scheduler, and out of the model again.

Whatever the model's front end raises costs the one utterance, nobody else; that the model is gone
is passed on (``RunnerDead``). Engine's thread only.
"""

import logging

from playhead.engine.answers import News, describe
from playhead.engine.scheduler import Scheduler
from playhead.engine.spread import spread
from playhead.engine.types import EngineEvent, Finish, Finished, Request, Runner, RunnerDead

log = logging.getLogger(__name__)


class Intake:
    """Opens, feeds and closes utterances."""

    def __init__(self, runner: Runner, scheduler: Scheduler) -> None:
        self._runner = runner
        self._scheduler = scheduler
        self._refused: list[EngineEvent] = []

    def submit(self, request: Request, now: float) -> None:
        """Let an utterance in, or keep its refusal for :meth:`refusals`."""
        refusal = self._scheduler.admit(request, now)
        if refusal:
            self._refuse(request.utterance, refusal.code, refusal.message, refusal.retry_after)
            return
        for gone in self._scheduler.closed():  # its place may be the one that is needed
            self.close(gone)
        try:
            self._runner.open(request)
        except ValueError as fault:
            self._refuse(request.utterance, "bad_value", str(fault), None)
        except RunnerDead:
            self._scheduler.enter(request, now)  # to be told like everybody else
            raise
        except Exception as fault:
            # A fault of the model with one request must not stop the others.
            log.exception("the model cannot open utterance %d", request.utterance)
            self._refuse(request.utterance, "engine_error", describe(fault), None)
        else:
            self._scheduler.enter(request, now)

    def text(self, utterance: int, delta: str, flush: bool, end: bool) -> None:
        """Text for a live utterance."""
        if not self._scheduler.speaks(utterance):
            return
        try:
            steppable = self._runner.push_text(utterance, delta, flush=flush, end=end)
        except ValueError as fault:
            self._scheduler.fail(utterance, "bad_value", str(fault))
        except RunnerDead:
            raise
        except Exception as fault:
            # A text that breaks the model's front end costs its own utterance, nobody else's.
            log.exception("the model cannot take the text of utterance %d", utterance)
            self._scheduler.fail(utterance, "engine_error", describe(fault))
        else:
            taken = steppable is not None
            self._scheduler.text(utterance, bool(steppable), delta, end=end and taken)

    def hear(self, news: News) -> None:
        """What a model in another process says to what it was asked. Raises ``RunnerDead``."""
        if isinstance(news, RunnerDead):
            raise news
        for answer in news:
            if answer.code:
                self._scheduler.fail(answer.utterance, answer.code, answer.message)
            else:
                self._scheduler.text(answer.utterance, answer.steppable, end=answer.end)

    def close(self, utterance: int) -> None:
        """Free what the model holds of an utterance."""
        try:
            self._runner.close(utterance)
        except RunnerDead:
            raise
        except Exception:
            # Its listener has its terminal event; what leaks is the model's to find.
            log.exception("the model cannot close utterance %d", utterance)

    def refusals(self) -> list[EngineEvent]:
        """Take all refusals since the last call."""
        refused, self._refused = self._refused, []
        return refused

    def _refuse(self, utterance: int, code: str, message: str, retry_after: float | None) -> None:
        wait = None if retry_after is None else spread(retry_after, utterance)
        self._refused.append(Finished(utterance, Finish.FAILED, 0, code, message, wait))
