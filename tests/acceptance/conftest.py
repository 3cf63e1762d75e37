"""Nothing is started where no client is installed."""

import pytest
from acceptance_rig import ENVIRONMENTS


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before the servers of a module are started."""
    if item.get_closest_marker("acceptance") is not None and not ENVIRONMENTS.is_dir():
        pytest.skip("scripts/acceptance installs the clients")
