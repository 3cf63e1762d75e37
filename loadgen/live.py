"""Progress of a run, on standard error while it goes on."""

import sys

from playhead.loadgen.table import progress
from playhead.loadgen.tally import Tally

_QUIET = 5  # seconds between progress lines where nobody watches


def show(tally: Tally, elapsed: float, length: float, processes: int) -> None:
    """Where somebody watches, a line that is written again; elsewhere a line now and then."""
    live = sys.stderr.isatty()
    if live or int(elapsed) % _QUIET == 0:
        line = progress(tally, elapsed, length, processes)
        print(line, end="\r" if live else "\n", file=sys.stderr, flush=True)
