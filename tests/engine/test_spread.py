"""Those who are sent away together do not come back together."""

from itertools import pairwise

import pytest
from playhead.engine.spread import Spread, spread


def test_the_first_is_told_as_it_is_and_nobody_less_or_much_more() -> None:
    told = [spread(5.0, number) for number in range(1_000)]
    assert told[0] == min(told) == 5.0
    assert max(told) < 7.5


@pytest.mark.parametrize("many", [10, 100, 1_000])
def test_however_many_they_come_evenly(many: int) -> None:
    """Of any ten in a row no two are told nearly the same, and no tenth of the time is crowded."""
    told = [spread(1.0, number, 1.0) for number in range(many)]
    for tenth in range(10):
        here = sum(1.0 + tenth / 10 <= one < 1.1 + tenth / 10 for one in told)
        assert abs(here - many / 10) <= 2
    for first in range(many - 9):
        row = sorted(told[first : first + 10])
        assert min(b - a for a, b in pairwise(row)) > 0.05


def test_who_has_no_number_is_told_what_the_next_would_be() -> None:
    later = Spread(2.0)
    assert [later(3.0) for _ in range(20)] == [spread(3.0, number, 2.0) for number in range(20)]
    assert Spread()(3.0) == 3.0, "each place counts for itself"
