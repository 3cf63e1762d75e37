# ruff: noqa: E402 - what follows needs torch
"""Weights: what a file holds is checked before it is used, and random ones stand in for it."""

import errno
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from ssl import SSLError

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra: qwen)")
pytest.importorskip("safetensors", reason="safetensors is not installed (extra: qwen)")

from playhead.engine.models.qwen3_tts import weights
from playhead.engine.models.qwen3_tts.codec_spec import IGNORED, PREFIX, decoder_tensors
from playhead.engine.models.qwen3_tts.config import read_codec_config
from playhead.engine.models.qwen3_tts.weights import (
    TensorSpec,
    WeightsError,
    compute_dtype,
    dense,
    load_tensors,
    model_folder,
    random_tensors,
)
from safetensors.torch import save_file

VECTORS = Path(__file__).resolve().parents[3] / "vectors" / "qwen3_tts"
SPECS = {"a": dense(4, 3), "b": weights.bias(5), "c": weights.scale(2)}


def folder_of(folder: Path, **changes: "torch.Tensor | None") -> Path:
    """A folder whose file fits SPECS but for the changes; None leaves a tensor out."""
    tensors = {f"m.{name}": value for name, value in random_tensors(SPECS, 0).items()}
    tensors |= {f"m.{name}": value for name, value in changes.items() if value is not None}
    for name, value in changes.items():
        if value is None:
            del tensors[f"m.{name}"]
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_a_fitting_file_is_read_as_stored(tmp_path: Path) -> None:
    half = torch.ones(5, dtype=torch.bfloat16)
    found = load_tensors(folder_of(tmp_path, b=half), SPECS, prefix="m.")
    assert list(found) == ["a", "b", "c"]
    assert torch.equal(found["a"], random_tensors(SPECS, 0)["a"])
    assert found["b"].dtype == torch.bfloat16
    wide = load_tensors(tmp_path, SPECS, prefix="m.", dtype=torch.float32)
    assert {tensor.dtype for tensor in wide.values()} == {torch.float32}


def test_a_published_layout_is_read() -> None:
    config = read_codec_config(VECTORS / "codec_tiny" / "config.json").decoder
    specs = decoder_tensors(config)
    found = load_tensors(VECTORS / "codec_tiny", specs, prefix=PREFIX, ignored=IGNORED)
    assert {name: tuple(tensor.shape) for name, tensor in found.items()} == {
        name: spec.shape for name, spec in specs.items()
    }


def test_several_files_are_read_by_their_index(tmp_path: Path) -> None:
    tensors = {f"m.{name}": value for name, value in random_tensors(SPECS, 0).items()}
    owners = {"m.a": "one.safetensors", "m.b": "two.safetensors", "m.c": "one.safetensors"}
    for file in set(owners.values()):
        part = {name: tensors[name] for name, owner in owners.items() if owner == file}
        save_file(part, tmp_path / file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": owners}))
    found = load_tensors(tmp_path, SPECS, prefix="m.")
    assert all(torch.equal(found[name], tensors[f"m.{name}"]) for name in SPECS)
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(WeightsError, match=r"partial: two.safetensors is missing; download it"):
        load_tensors(tmp_path, SPECS, prefix="m.")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "has no 'weight_map'; it must be a JSON object"),
        ('{"weight_map": []}', "weight_map must be a JSON object, not list"),
        ('{"weight_map": {"m.a": 1}}', "m.a is 1; it must be a string"),
        ('{"weight_map": {"m.a": "../x"}}', "'../x' is no file of this folder"),
        ('{"weight_map": {"m.a": "/etc/x"}}', "'/etc/x' is no file of this folder"),
        ('{"weight_map": {"m.a": ".."}}', "'..' is no file of this folder"),
        ('{"weight_map": {"m.a": "."}}', "'.' is no file of this folder"),
        ('{"weight_map": {"m.a": ""}}', "'' is no file of this folder"),
    ],
)
def test_an_index_that_is_none_is_refused(tmp_path: Path, content: str, message: str) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(content)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        load_tensors(tmp_path, SPECS, prefix="m.")
    assert str(index) in str(caught.value)


def test_a_folder_is_no_file_of_an_index(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"m.a": "inner"}}')
    (tmp_path / "inner").mkdir()
    with pytest.raises(WeightsError, match="partial: inner is missing"):
        load_tensors(tmp_path, SPECS, prefix="m.")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"b": None}, "lacks 1 of the 3 tensors its config.json implies: m.b; the download is"),
        ({"a": None, "b": None, "c": None}, "lacks 3 of the 3"),
        ({"z": torch.ones(1)}, "holds 1 tensors unknown to this architecture: m.z"),
        ({"a": torch.ones(3, 4)}, r"m.a has shape \[3, 4\]; config.json implies \[4, 3\]"),
        ({"a": torch.ones(4, 3).half()}, "m.a is stored as F16; usable are F32 and BF16"),
        ({"c": torch.ones(2).long()}, "m.c is stored as I64"),
    ],
)
def test_another_architecture_is_refused(
    tmp_path: Path, changes: dict[str, "torch.Tensor | None"], message: str
) -> None:
    folder_of(tmp_path, other=torch.ones(1), **changes)
    with pytest.raises(WeightsError, match=message):
        load_tensors(tmp_path, SPECS, prefix="m.", ignored=["m.other"])


def test_many_faults_are_not_all_listed(tmp_path: Path) -> None:
    extra = {f"x{index}": torch.ones(1) for index in range(9)}
    with pytest.raises(WeightsError, match=r"9 tensors unknown .*: m.x0, m.x1, m.x2, …$"):
        load_tensors(folder_of(tmp_path, **extra), SPECS, prefix="m.")


def test_missing_folder_and_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"nowhere does not exist; it must hold config.json"):
        load_tensors(tmp_path / "nowhere", SPECS)
    with pytest.raises(WeightsError, match=r"partial: model.safetensors is missing"):
        load_tensors(tmp_path, SPECS)


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(4, 3)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(WeightsError, match=r"model.safetensors is missing"):
        load_tensors(tmp_path, {"a": SPECS["a"]})
    shutil.copy(tmp_path / "pytorch_model.bin", tmp_path / "model.safetensors")
    with pytest.raises(WeightsError, match="is no complete safetensors file"):
        load_tensors(tmp_path, {"a": SPECS["a"]})


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    file = folder_of(tmp_path) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(WeightsError, match="is no complete safetensors file"):
        load_tensors(tmp_path, SPECS, prefix="m.")


def safetensors(header: bytes, data: bytes = bytes(96)) -> bytes:
    return len(header).to_bytes(8, "little") + header + data


@pytest.mark.parametrize(
    "content",
    [
        safetensors(b'{"a": {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 96]}}'),
        safetensors(
            b'{"a": {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 48]},'
            b'"b": {"dtype": "F32", "shape": [4, 3], "data_offsets": [24, 72]}}'
        ),
        safetensors(b'{"a": {"dtype": "F32", "shape": [4, 3], "data_offsets": [48, 96]}}'),
        safetensors(b'{"a": {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, 1e30]}}'),
        safetensors(b'{"a": {"dtype": "F32", "shape": [4, -3], "data_offsets": [0, 48]}}'),
        safetensors(
            b'{"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 48]}}'
        ),
        safetensors(b"{" * 10_000),
        (200 * 1024 * 1024).to_bytes(8, "little") + b"{}",
        (2**63).to_bytes(8, "little") + b"{}",
        b"",
    ],
    ids=[
        *("size and shape differ", "overlap", "hole", "end beyond all", "negative", "overflow"),
        *("deep", "header of 200 MB", "header beyond all", "empty"),
    ],
)
def test_a_malicious_header_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(WeightsError, match="is no complete safetensors file"):
        load_tensors(tmp_path, {"a": SPECS["a"]})


def test_random_weights_follow_their_specs() -> None:
    specs = {
        "normal": TensorSpec((400, 100), 0.5, mean=2.0),
        "usage": TensorSpec((10_000,), 0.75, mean=1.25, positive=True),
        "dense": dense(300, 100, 4, gain=2.0),
    }
    found = random_tensors(specs, 7)
    assert found["normal"].mean().item() == pytest.approx(2.0, abs=0.02)
    assert found["normal"].std().item() == pytest.approx(0.5, rel=0.02)
    assert found["dense"].std().item() == pytest.approx(0.1, rel=0.02)
    assert 0.5 <= found["usage"].min() < 0.51
    assert 1.99 < found["usage"].max() <= 2.0
    again, other = random_tensors(specs, 7), random_tensors(specs, 8)
    assert all(torch.equal(found[name], again[name]) for name in specs)
    assert not any(torch.equal(found[name], other[name]) for name in specs)
    assert random_tensors(specs, 7, dtype=torch.bfloat16)["dense"].dtype == torch.bfloat16


def test_only_two_dtypes_are_computed_in() -> None:
    assert compute_dtype("bfloat16") == torch.bfloat16
    assert compute_dtype("float32") == torch.float32
    with pytest.raises(WeightsError, match="'float16' is not supported; use bfloat16 or float32"):
        compute_dtype("float16")


def test_a_model_is_a_folder_or_a_hub_id(tmp_path: Path) -> None:
    assert model_folder(str(tmp_path)) == tmp_path
    with pytest.raises(WeightsError, match=r"no such folder, and no hub id of the form owner/name"):
        model_folder(tmp_path / "nowhere")


def test_hub_downloads_are_limited_to_harmless_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked: dict[str, object] = {}

    def download(source: str, allow_patterns: list[str]) -> str:
        asked[source] = allow_patterns
        return str(tmp_path)

    monkeypatch.setattr(hub, "snapshot_download", download)
    assert model_folder("someone/some-model") == tmp_path
    assert asked == {"someone/some-model": ["*.json", "*.safetensors", "*.txt"]}


class OfAClient(Exception):
    """What an HTTP client raises when a connection is lost on the way."""


class OfAnotherClient(OSError):
    """The same of a client whose faults are OSErrors without a number, as those of requests are."""


@pytest.mark.parametrize(
    "kind",
    ["LocalEntryNotFoundError", OfAClient, ValueError, OfAnotherClient, TimeoutError],
)
def test_a_hub_that_does_not_give_it_all_is_reported(
    kind: str | type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    raised = getattr(hub.errors, kind) if isinstance(kind, str) else kind

    def download(source: str, allow_patterns: list[str]) -> str:
        raise raised("no\nconnection")

    monkeypatch.setattr(hub, "snapshot_download", download)
    said = "did not give it: no connection Without a connection, download the folder"
    with pytest.raises(WeightsError, match=said):
        model_folder("someone/some-model")


@pytest.mark.parametrize(
    "fault",
    [OSError(errno.ECONNRESET, "it broke"), SSLError(errno.EPERM, "it broke")],
    ids=["reset", "TLS, whose numbers are others"],
)
def test_a_connection_that_breaks_is_the_hubs(
    fault: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def download(source: str, allow_patterns: list[str]) -> str:
        raise fault

    monkeypatch.setattr(hub, "snapshot_download", download)
    with pytest.raises(WeightsError, match=r"did not give it: .*it broke"):
        model_folder("someone/some-model")


@pytest.mark.parametrize("number", ["ENOSPC", "EDQUOT", "EACCES", "EPERM", "EROFS"])
def test_a_full_disk_is_no_fault_of_the_hub(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def download(source: str, allow_patterns: list[str]) -> str:
        raise OSError(getattr(errno, number), "no file can be written")

    monkeypatch.setattr(hub, "snapshot_download", download)
    with pytest.raises(OSError, match="no file can be written"):
        model_folder("someone/some-model")


def test_configuration_is_read_without_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')\n")
    program = (
        "import playhead.engine.models.qwen3_tts.config as c, pathlib, sys; "
        "print(c.read_codec_config(pathlib.Path(sys.argv[1])).frame_samples)"
    )
    config = VECTORS / "codec_tiny" / "config.json"
    result = subprocess.run(
        [sys.executable, "-c", program, str(config)],
        env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "192"
