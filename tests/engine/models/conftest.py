from collections.abc import Callable

import pytest
from playhead.engine.models.hibari.runner import HibariRunner
from voice_kit import Speech, speak


@pytest.fixture(scope="session")
def runner() -> HibariRunner:
    return HibariRunner()


@pytest.fixture(scope="session")
def say(runner: HibariRunner) -> Callable[..., Speech]:
    return lambda text, **options: speak(runner, text, **options)
