"""Stands in for ``torch.cuda`` where there is none: what is asked of the device is done at once.

Two uses: measurements of the host's own work, where replaying a graph does nothing
(``bench/runner_host.py``), and tests of the CUDA lanes' logic, where it runs the graph's body.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

CALLS: Counter[str] = Counter()
"""Calls that a true device would be asked for, by name."""


class Stream:
    """Of work."""

    def __init__(self, device: object = None, priority: int = 0) -> None:
        self.device, self.priority = torch.device("cpu"), priority

    def synchronize(self) -> None:
        CALLS["stream.synchronize"] += 1

    def wait_stream(self, other: object) -> None:
        CALLS["wait_stream"] += 1


class Event:
    """Which has always happened."""

    def __init__(self, **_: object) -> None:
        pass

    def record(self, stream: object = None) -> None:
        CALLS["event.record"] += 1

    def synchronize(self) -> None:
        CALLS["event.synchronize"] += 1


class Graph:
    """Whose replay does nothing."""

    def replay(self) -> None:
        CALLS["replay"] += 1


class _Within:
    """As ``torch.cuda.stream``."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> None:
        CALLS["set stream"] += 1

    def __exit__(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """A device for as long as the context."""
    stream = Stream()
    stands_in: dict[str, Any] = {
        "Stream": Stream,
        "Event": Event,
        "CUDAGraph": Graph,
        "graph": _Within,
        "stream": _Within,
        "graph_pool_handle": lambda: (0, 0),
        "current_stream": lambda *_: stream,
        "synchronize": lambda *_: None,
        "memory_reserved": lambda *_: 0,
    }
    with contextlib.ExitStack() as stack:
        for name, value in stands_in.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value))
        pinned: Callable[[Any], Any] = lambda tensor: tensor  # noqa: E731
        stack.enter_context(mock.patch.object(torch.Tensor, "pin_memory", pinned))
        yield


class AtOnce:
    """A recorded body that is run at every replay."""

    def __init__(self, body: Callable[[], None], *_: object) -> None:
        self._body = body

    def replay(self) -> None:
        CALLS["replay"] += 1
        with torch.inference_mode():
            self._body()


@contextlib.contextmanager
def working() -> Iterator[None]:
    """A device that does its work: graphs recorded within do what they hold."""
    from playhead.engine.models.qwen3_tts import cuda_codec, cuda_lm

    with installed(), contextlib.ExitStack() as stack:
        for module in (cuda_codec, cuda_lm):
            stack.enter_context(mock.patch.object(module, "record", AtOnce))
        yield
