"""What is wrong with a device at the start: it is full, or it is broken."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts.device_faults import (  # noqa: E402
    DEVICE_FAULT,
    MEMORY_ERROR,
    DeviceError,
    told_apart,
)

OF_THE_DRIVER = "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation'"


@pytest.mark.parametrize(
    "fault",
    [
        MEMORY_ERROR("CUDA out of memory. Tried to allocate 2 MiB"),
        DEVICE_FAULT(OF_THE_DRIVER),
        RuntimeError("Triton Error [CUDA]: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ],
    ids=["allocator", "driver", "triton", "products", "convolutions"],
)
def test_a_full_device_is_one_kind_of_fault(fault: RuntimeError) -> None:
    with pytest.raises(MEMORY_ERROR) as caught, told_apart():
        raise fault
    assert str(caught.value) == str(fault).partition("\n")[0]


def test_a_full_device_is_seen_behind_the_capture_that_it_broke() -> None:
    @told_apart()
    def capture() -> None:
        try:
            raise MEMORY_ERROR("CUDA out of memory. Tried to allocate 2 MiB")
        finally:
            raise DEVICE_FAULT("CUDA error: operation failed due to a previous error")

    with pytest.raises(MEMORY_ERROR, match="2 MiB"):
        capture()


def test_a_broken_device_is_another() -> None:
    with (
        pytest.raises(DeviceError, match=r"the device failed: CUDA error: unspecified$"),
        told_apart(),
    ):
        raise DEVICE_FAULT("CUDA error: unspecified\nand advice")


@pytest.mark.parametrize(
    "fault",
    [ValueError("no folder"), RuntimeError("a disk is out of memory"), OSError("CUDA"), KeyError()],
    ids=repr,
)
def test_other_faults_are_as_they_were(fault: Exception) -> None:
    with pytest.raises(type(fault)) as caught, told_apart():
        raise fault
    assert caught.value is fault


def test_what_works_is_left_alone() -> None:
    with told_apart():
        assert torch.ones(1).item() == 1.0
