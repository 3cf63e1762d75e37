"""``playhead serve`` that also tells how many tasks its event loop has.

At each SIGUSR1 their number is written to the file that SOAK_TASKS names. The gateway itself does
not count them: looking through ten thousand takes longer than a frame of speech may wait.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from playhead.gateway.cli import main


def _tell(*_: object) -> None:
    Path(os.environ["SOAK_TASKS"]).write_text(f"{len(asyncio.all_tasks())}\n")


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, _tell)
    sys.exit(main())
