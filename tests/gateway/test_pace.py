"""The more listeners, the less often each reports."""

import pytest
from playhead.gateway.pace import report_interval


@pytest.mark.parametrize(
    ("sessions", "seconds"), [(0, 0.25), (250, 0.25), (400, 0.4), (1_000, 1.0), (50_000, 1.0)]
)
def test_the_interval_bounds_what_all_send_together(sessions: int, seconds: float) -> None:
    assert report_interval(sessions) == seconds
