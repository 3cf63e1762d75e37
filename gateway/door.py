"""What the gateway asks of the engine. All of it may be called from the event loop."""

from collections.abc import Callable, Collection
from typing import Protocol

from playhead.engine.picture import EnginePicture
from playhead.engine.stats import EngineStats
from playhead.engine.types import ListenerState, ModelInfo, Report, Request


class EngineDoor(Protocol):
    """The engine as its gateway sees it: nothing here blocks, answers arrive as events."""

    info: ModelInfo
    dead: BaseException | None
    tells: bool
    """Whether our /metrics shows the engine's figures: of gateways that share one, one does."""

    def start(self) -> None:
        """Begin to work."""

    def stop(self) -> None:
        """End the engine's threads."""

    def submit(self, request: Request) -> None:
        """Open an utterance; a refusal arrives as ``Finished(FAILED)``."""

    def push_text(
        self, utterance: int, delta: str, *, flush: bool = False, end: bool = False
    ) -> None:
        """Give an open utterance more text."""

    def cancel(self, utterance: int) -> None:
        """Stop an utterance; ``Finished(CANCELLED)`` follows."""

    def report(self, report: Report, now: float) -> None:
        """A listener's counters, with the time they were read off the socket."""

    def hold(self, utterance: int, state: ListenerState | None, now: float) -> None:
        """Freeze an utterance's listener (paused, suspended); None lets it go on."""

    def delay(self, client: str, one_way: float) -> None:
        """The measured one-way delay to a client, in seconds."""

    def forget(self, client: str) -> None:
        """A client is gone for good."""

    def paused(self, seconds: float, now: float) -> None:
        """The event loop stood still for ``seconds`` until ``now``: leads should cover that."""

    def stats(self) -> EngineStats:
        """The state after the engine's last turn."""

    def look(self, utterances: Collection[int], see: Callable[[EnginePicture], None]) -> None:
        """Call ``see`` soon, on the engine's thread, with a picture and what is believed of the
        listeners of ``utterances``; never when the engine is dead."""
