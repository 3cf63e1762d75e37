"""The thread of the watchdog."""

import logging
import threading
from collections.abc import Callable, Mapping

from playhead.engine.watchdog import TICK, Stuck, Watchdog

log = logging.getLogger(__name__)


class Overseer:
    """Asks ``at_work`` who is at which piece and calls ``condemn``, once and on its own thread,
    when one of them has not come back for ``patience`` seconds."""

    def __init__(
        self,
        patience: float,
        at_work: Callable[[], Mapping[str, int]],
        condemn: Callable[[Stuck], None],
        clock: Callable[[], float],
    ) -> None:
        self._watchdog = Watchdog(patience)
        self._at_work = at_work
        self._condemn = condemn
        self._clock = clock
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="playhead-watchdog", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self, patience: float) -> None:
        """Look no more; waits up to ``patience`` seconds for the thread."""
        self._over.set()
        self._thread.join(patience)

    def _run(self) -> None:
        while not self._over.wait(TICK):
            stuck = self._watchdog.look(self._at_work(), self._clock())
            if stuck is not None:
                log.critical("the engine is stuck: %s", stuck)
                self._condemn(stuck)
                return
