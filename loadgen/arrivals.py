"""When utterances are asked for: pure functions of a rate, a length and a seed.

Times are seconds from the start of a run, ascending, in ``[0, seconds)``. The load is open loop:
nothing here knows how the server is doing.
"""

import math
import random
from collections.abc import Callable, Iterable

#: Coefficient of variation of the gaps of :func:`gamma` unless told otherwise: visible bursts.
BURSTY = 2.0


def constant(rate: float, seconds: float) -> list[float]:
    """One every ``1 / rate`` seconds. Raises ``ValueError`` unless the rate is positive."""
    _check(rate)
    return [number / rate for number in range(math.ceil(rate * seconds - 1e-9))]


def poisson(rate: float, seconds: float, seed: int) -> list[float]:
    """A Poisson process: independent users. Raises ``ValueError`` unless the rate is positive."""
    _check(rate)
    rng = random.Random(f"poisson {seed}")
    return _until(seconds, lambda: rng.expovariate(rate))


def gamma(rate: float, seconds: float, seed: int, variation: float = BURSTY) -> list[float]:
    """Gamma distributed gaps whose standard deviation is ``variation`` times their mean.

    1 is the Poisson process, more comes in bursts. Raises ``ValueError`` unless both are positive.
    """
    _check(rate)
    if not (math.isfinite(variation) and variation > 0):
        raise ValueError(f"variation of the gaps is {variation}; it must be above 0")
    rng = random.Random(f"gamma {seed}")
    shape = variation**-2
    return _until(seconds, lambda: rng.gammavariate(shape, 1 / (rate * shape)))


def trace(lines: Iterable[str], seconds: float = math.inf) -> list[float]:
    """Recorded times, one number of seconds a line, shifted so that the first is 0.

    Empty lines and those that start with ``#`` do not count; the order is mended. Raises
    ``ValueError`` naming the line that is not a time, or when there is none at all.
    """
    times = []
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not text.startswith("#"):
            times.append(_time(text, number))
    if not times:
        raise ValueError("the trace holds no times: give one number of seconds a line")
    first = min(times)
    return sorted(time - first for time in times if time - first < seconds)


def _time(text: str, number: int) -> float:
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if not math.isfinite(time):
        raise ValueError(f"line {number} of the trace is {text!r}; expected seconds, such as 12.5")
    return time


def _check(rate: float) -> None:
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"a rate of {rate} utterances a second; it must be above 0")


def _until(seconds: float, gap: Callable[[], float]) -> list[float]:
    """Each gap is drawn before the time it leads to, so that the first arrival is not at 0."""
    times = []
    at = gap()
    while at < seconds:
        times.append(at)
        at += gap()
    return times
