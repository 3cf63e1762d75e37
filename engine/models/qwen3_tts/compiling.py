"""Kernels compiled by several processes at once, before the server needs them.

Triton compiles a kernel when it is first called: one after the other, a minute for the codec where
its cache on disk is empty. What will be called is found out by calling it with the launches left
out. Other processes, which need no device, put it into that cache, and this one finds it there.
They are this module, run by itself: children that `multiprocessing` spawns run their parent's main
module first, and whether that bears it is its affair.
"""

import importlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

from playhead.engine.clock import monotonic

MOST_PROCESSES = 12
PATIENCE = 300.0
"""Seconds for all kernels of one process; half a minute is usual."""
log = logging.getLogger(__name__)
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
        self._kernels = len(kernels)
        count = min(len(kernels), most or MOST_PROCESSES, len(os.sched_getaffinity(0)))
        self.processes = count
        self._pool = ThreadPoolExecutor(max(1, count))
        self._futures: list[Future[list[str]]] = [
            self._pool.submit(_elsewhere, kernels[i::count], wanted_by) for i in range(count)
        ]

    def wait(self) -> int:
        """Until all are there; how many are. What failed is said, and compiled when it is called.
        Waiting twice is fine."""
        if not self._futures:
            return 0
        failed = [fault for future in as_completed(self._futures) for fault in future.result()]
        for fault in failed:
            log.warning("a kernel is compiled when it is needed instead: %s", fault)
        self._pool.shutdown()
        self._futures = []
        done, seconds = self._kernels - len(failed), monotonic() - self._began
        log.info("%d kernels by %d processes (%.1f s)", done, self.processes, seconds)
        return done


def _elsewhere(kernels: Sequence[str], wanted_by: Target) -> list[str]:
    """Compile ``kernels`` in another process; what failed, one sentence each."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(
            command,
            input=json.dumps([kernels, wanted_by]),
            capture_output=True,
            text=True,
            env=environment,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return [f"no compiler: {fault}"] * len(kernels)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        return [f"a compiler ended with {done.returncode}: {last}"] * len(kernels)
    faults: list[str] = json.loads(done.stdout)
    return faults


def _compile_all(kernels: Sequence[str], wanted_by: Target) -> list[str]:
    """What failed, one sentence each."""
    faults = []
    for kernel in kernels:
        try:
            compile_kernel(kernel, wanted_by)
        except Exception as fault:
            # The top of this process: whatever the compiler raises, the others can be compiled.
            log.exception("%s", kernel)
            faults.append(f"{type(fault).__name__}: {fault}")
    return faults


def main() -> None:
    """Read what to compile, and write what failed. Triton prints to standard output what its
    assembler complains of, so that one is not for it."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)
        json.dump(_compile_all(*json.load(sys.stdin)), answer)


if __name__ == "__main__":
    main()
