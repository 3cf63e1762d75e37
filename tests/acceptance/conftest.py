"""Nothing is started where no client is installed."""

import pytest
from acceptance_rig import ENVIRONMENTS


@pytest.fixture(scope="session", autouse=True)
def environments() -> None:
    if not ENVIRONMENTS.is_dir():
        pytest.skip("scripts/acceptance installs the clients")
