"""Threads for wire encoders: a bounded number that work, however many never come back.

The standard library's pool would do, but for one thing: a thread that hangs in foreign code keeps
its place in it for ever, and as many of them as there are places are the end of all encoding.
"""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any, Final, ParamSpec, TypeVar

NAME: Final = "encoder"
P = ParamSpec("P")
T = TypeVar("T")
_Job = tuple[Future[Any], Callable[[], Any]]


class EncoderThreads(Executor):
    """``threads`` at work at a time, in the order in which work comes."""

    def __init__(self, threads: int) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._working: dict[Future[Any], threading.Thread] = {}
        self._lock = threading.Lock()
        self._over = False
        self._threads: set[threading.Thread] = set()
        for _ in range(threads):
            self._start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As of :class:`concurrent.futures.Executor`. Raises ``RuntimeError`` after shutdown."""
        if self._over:
            raise RuntimeError("the encoders' threads have ended")
        future: Future[T] = Future()
        self._jobs.put((future, lambda: fn(*args, **kwargs)))
        return future

    def write_off(self, job: Future[Any]) -> None:
        """``job`` does not come back: another thread takes the place of the one that it holds,
        which ends when the job does. Nothing happens when it has just come back after all."""
        with self._lock:
            thread = self._working.get(job)
            if thread not in self._threads:
                return
            self._threads.discard(thread)
        self._start()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No more work. What waits is done, or cancelled with ``cancel_futures``."""
        self._over = True
        if cancel_futures:
            self._cancel_waiting()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in list(self._threads) if wait else ():
            thread.join()

    def _cancel_waiting(self) -> None:
        with contextlib.suppress(Empty):
            while True:
                if (job := self._jobs.get_nowait()) is not None:
                    job[0].cancel()

    def _start(self) -> None:
        # Daemons: whoever ends the process must not wait for one that hangs.
        thread = threading.Thread(target=self._work, name=NAME, daemon=True)
        self._threads.add(thread)
        thread.start()

    def _work(self) -> None:
        me = threading.current_thread()
        while me in self._threads and (job := self._jobs.get()) is not None:
            self._run(*job)

    def _run(self, future: Future[T], call: Callable[[], T]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        with self._lock:
            self._working[future] = threading.current_thread()
        try:
            result = call()
        except BaseException as fault:  # noqa: BLE001 - told to whoever waits, and the thread lives
            future.set_exception(fault)
        else:
            future.set_result(result)
        finally:
            with self._lock:
                del self._working[future]
