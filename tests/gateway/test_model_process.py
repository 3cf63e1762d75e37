"""``--lanes apart``: whole processes, the model's among them."""

import os
import signal
import time
from pathlib import Path

import pytest
from machine import AT_ONCE, PATIENCE
from playhead.gateway.settings import Settings, SettingsError
from test_remote_engine import children, named, status, supervised

FLAGS = ("--model", "qwen3-tts", "--weights", "random:0.6b", "--lanes", "apart")


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


def loaded(pid: int) -> bool:
    return "libtorch" in Path(f"/proc/{pid}/maps").read_text()


def test_a_model_that_is_killed_comes_back_with_engine_and_gateways() -> None:
    with supervised("--gateways", "1", *FLAGS) as process:
        process.stdout.readline()
        (engine,) = named(children(process.pid), "engine")
        (model,) = named(children(engine), "model")
        assert not loaded(engine)
        os.kill(model, signal.SIGKILL)
        url = process.stdout.readline().rpartition(" ")[2].strip()
        assert status(url) == 200
        (engine,) = named(children(process.pid), "engine")
        (successor,) = named(children(engine), "model")
        process.terminate()
        _, err = process.communicate(timeout=AT_ONCE)
    assert process.returncode == 0, err
    assert "the model's process was ended by SIGKILL" in err
    assert err.count("ended with 70") == 2, err
    assert gone(model)
    assert gone(successor)


def test_a_server_of_one_process_can_have_its_model_apart_and_takes_it_along() -> None:
    with supervised(*FLAGS) as process:
        url = process.stdout.readline().rpartition(" ")[2].strip()
        assert status(url) == 200
        (model,) = named(children(process.pid), "model")
        process.kill()
        until = time.monotonic() + PATIENCE
        while not gone(model) and time.monotonic() < until:
            time.sleep(0.01)
        assert gone(model)


def test_why_it_cannot_be_loaded_is_said_as_in_one_process(tmp_path: Path) -> None:
    with supervised(*FLAGS, "--clones", str(tmp_path)) as process:
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert err == "playhead serve: --clones are not pretended\n"


def test_only_the_accelerator_s_lanes_can_be_apart() -> None:
    with pytest.raises(SettingsError, match="--lanes apart goes with --model qwen3-tts"):
        Settings(lanes="apart")
