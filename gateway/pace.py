"""How often listeners are asked to report.

As with RTCP (RFC 3550, section 6.2), what all of them send together is bounded, so that each of
many reports less often. Changes of state are told at once whatever the pace.
"""

from typing import Final

LEAST: Final = 0.25
MOST: Final = 1.0
REPORTS_PER_SECOND: Final = 1_000  # of all sessions together


def report_interval(sessions: int) -> float:
    """Seconds between the reports of a listener whose state does not change, with ``sessions``
    others to listen to."""
    return min(MOST, max(LEAST, sessions / REPORTS_PER_SECOND))
