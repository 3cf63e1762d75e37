"""Choosing the model: what is refused, and with which words."""

import math

import pytest
from fake_runner import FakeRunner
from playhead.engine.lanes import cpu_limits
from playhead.engine.lead import LeadLimits
from playhead.engine.types import Urgency
from playhead.gateway.models import StartError, open_model, usable_cores
from playhead.gateway.settings import Settings, SettingsError


def test_the_bundled_voice_runs_on_the_cores() -> None:
    runner, lead = FakeRunner(), LeadLimits(fixed=1.2)
    served = open_model(Settings(urgency=Urgency.NONE, lead=lead), lambda: runner)
    assert served.runner is runner
    assert served.lanes == cpu_limits(usable_cores())
    assert served.policy.urgency is Urgency.NONE
    assert served.policy.lead is lead
    assert not math.isinf(served.policy.max_utilisation)


def test_without_a_device_the_message_says_so() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a device")
    settings = Settings(model="qwen3-tts", weights="random:0.6b")
    with pytest.raises(StartError, match="no CUDA device is usable here"):
        open_model(settings, FakeRunner)


@pytest.mark.parametrize(
    "values", [{"model": "qwen3-tts"}, {"weights": "random:1.7b"}], ids=["missing", "needless"]
)
def test_weights_go_with_the_model_that_takes_them(values: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=r"--weights go with --model qwen3-tts"):
        Settings(**values)  # type: ignore[arg-type]


def test_clones_go_with_the_model_that_makes_them() -> None:
    with pytest.raises(SettingsError, match=r"--clones go with --model qwen3-tts"):
        Settings(clones="voices")


@pytest.mark.parametrize(
    ("fault", "clones", "said"),
    [
        ("MEMORY_ERROR", None, r"--slots 512 of --context 1024 do not fit .*: lower one of them"),
        ("TOO_LARGE", None, r"--slots 512 of --context 1024 do not fit: why"),
        ("DeviceError", None, r"--model qwen3-tts cannot be served: why"),
        ("VOICE_ERROR", "voices", r"--clones voices: why"),
        ("VOICE_ERROR", None, r"--clones \(not given\): why"),
        ("ValueError", None, r"--weights some/model cannot be used \(why\): name a model folder"),
        ("ImportError", None, r"needs packages that are not installed \(why\): pip install"),
        ("OSError", None, r"--weights some/model cannot be used \(why\): name a model folder"),
    ],
)
def test_what_cannot_be_opened_names_its_setting(
    monkeypatch: pytest.MonkeyPatch, fault: str, clones: str | None, said: str
) -> None:
    pytest.importorskip("torch")
    from playhead.engine.models.qwen3_tts import cuda_runner, device_faults

    kinds: dict[str, type[Exception]] = {
        "MEMORY_ERROR": device_faults.MEMORY_ERROR,
        "TOO_LARGE": cuda_runner.TOO_LARGE,
        "DeviceError": device_faults.DeviceError,
        "VOICE_ERROR": cuda_runner.VOICE_ERROR,
        "ValueError": ValueError,
        "OSError": OSError,
        "ImportError": ImportError,
    }

    def open_cuda(*_: object, **__: object) -> None:
        raise kinds[fault]("why")

    monkeypatch.setattr(cuda_runner, "open_cuda", open_cuda)
    settings = Settings(model="qwen3-tts", weights="some/model", clones=clones)
    with pytest.raises(StartError, match=said):
        open_model(settings, FakeRunner)
