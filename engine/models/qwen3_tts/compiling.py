"""Kernels compiled by several processes at once, before the server needs them.

Triton compiles a kernel when it is first called: one after the other, a minute for the codec where
its cache on disk is empty. What will be called is found out by calling it with the launches left
out. Other processes, which need no device, put it into that cache, and this one finds it there.
"""

import importlib
import json
import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from playhead.engine.clock import monotonic

MOST_PROCESSES = 12
_log = logging.getLogger(__name__)
Target = tuple[str, int, int]
"""Backend, architecture and the width of a warp."""


def wanted(run: Callable[[], object]) -> tuple[str, ...]:
    """The kernels that ``run`` calls and this process has not compiled yet, as Triton writes them
    down. None of those is launched, so that what they would have written stays as it was: nothing
    may be looked up by it."""
    from triton import knobs

    found: dict[str, None] = {}

    def note(**call: Any) -> bool:
        found[call["compile"]["specialization_data"]] = None
        return True  # neither compiled nor launched

    before, knobs.runtime.jit_cache_hook = knobs.runtime.jit_cache_hook, note
    try:
        run()
    finally:
        knobs.runtime.jit_cache_hook = before
    return tuple(found)


def target() -> Target:
    """What this process's device wants."""
    from triton.runtime.driver import driver

    found = driver.active.get_current_target()
    return found.backend, found.arch, found.warp_size


def compile_kernel(text: str, wanted_by: Target) -> None:
    """Compile one of ``wanted`` to the cache on disk, unless it is there."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    said = json.loads(text)
    module, _, name = said["name"].rpartition(".")
    constants = zip(map(tuple, said["constant_keys"]), said["constant_vals"], strict=True)
    source = ASTSource(
        fn=vars(importlib.import_module(module))[name],
        signature=said["signature"],
        constexprs=dict(constants),
        attrs=dict(zip(map(tuple, said["attrs_keys"]), said["attrs_vals"], strict=True)),
    )
    options = {name: _tuple(value) for name, value in said["options"].items()}
    triton.compile(source, target=GPUTarget(*wanted_by), options=options)


def _tuple(value: Any) -> Any:
    """As it was before it was written down: JSON knows no tuples."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


class Ahead:
    """Kernels on their way into the cache."""

    def __init__(
        self, kernels: tuple[str, ...], wanted_by: Target, most: int | None = None
    ) -> None:
        """At most ``most`` processes, or one per core up to ``MOST_PROCESSES``."""
        self._began = monotonic()
        self.processes = min(len(kernels), most or MOST_PROCESSES, len(os.sched_getaffinity(0)))
        self._pool = None
        self._futures: list[Future[None]] = []
        if kernels:
            # Not forked: a process that has opened the device cannot be copied.
            self._pool = ProcessPoolExecutor(self.processes, get_context("spawn"))
            self._futures = [self._pool.submit(compile_kernel, k, wanted_by) for k in kernels]

    def wait(self) -> int:
        """Until all are there; how many are. What failed is said, and compiled when it is called.
        Waiting twice is fine."""
        failed = 0
        for future in as_completed(self._futures):
            error = future.exception()
            if error is not None:
                failed += 1
                _log.warning("a kernel is compiled when it is needed instead: %s", error)
        done = len(self._futures) - failed
        if self._pool is not None:
            self._pool.shutdown()
            seconds = monotonic() - self._began
            _log.info("%d kernels by %d processes (%.1f s)", done, self.processes, seconds)
        self._pool, self._futures = None, []
        return done
