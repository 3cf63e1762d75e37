"""Model weights: safetensors files checked name by name, or random ones of the true sizes.

Only safetensors are ever opened: a header of plain JSON and raw numbers, nothing that can run code.
A caller states every tensor it needs as a :class:`TensorSpec`; a file that lacks one, shapes one
differently, or holds something nobody asked for is refused before any memory is taken.
"""

import errno
import math
import re
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from playhead.engine.models.qwen3_tts.config_table import read_table
from safetensors import SafetensorError, safe_open

Tensors = dict[str, torch.Tensor]
Specs = Mapping[str, "TensorSpec"]

STORED_DTYPES = ("F32", "BF16")
COMPUTE_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
HUB_FILES = ("*.json", "*.safetensors", "*.txt")
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
OF_THIS_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
"""What keeps a download from being written. A lost connection is often an OSError as well."""
MOST_NAMED = 3  # tensors that an error message lists


class WeightsError(ValueError):
    """A model folder is missing, partial, of another architecture, or asked for unusably."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor's shape, and what random values stand in for it.

    Random values are normal with the given mean and standard deviation. With ``positive`` they
    are uniform in ``mean`` ± ``deviation`` instead.
    """

    shape: tuple[int, ...]
    deviation: float
    mean: float = 0.0
    positive: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def dense(*shape: int, fan_in: int | None = None, gain: float = 1.0) -> TensorSpec:
    """A weight that keeps its input's scale: deviation ``gain / sqrt(fan_in)``.

    ``fan_in`` is every dimension but the first unless given.
    """
    return TensorSpec(shape, gain / math.sqrt(fan_in or math.prod(shape[1:])))


def bias(*shape: int) -> TensorSpec:
    """A bias: small against the activations."""
    return TensorSpec(shape, 0.02)


def scale(*shape: int) -> TensorSpec:
    """A norm's weight: about one."""
    return TensorSpec(shape, 0.1, mean=1.0)


def attention(at: str, hidden: int, queries: int, keys: int) -> Iterator[tuple[str, TensorSpec]]:
    """The projections of the layer named ``at``: of ``hidden`` columns, with so many of all query
    heads together, and of all key (or value) heads."""
    for part, out, inputs in (
        ("q_proj", queries, hidden),
        ("k_proj", keys, hidden),
        ("v_proj", keys, hidden),
        ("o_proj", hidden, queries),
    ):
        yield f"{at}.self_attn.{part}.weight", dense(out, inputs)


def compute_dtype(name: str) -> torch.dtype:
    """The dtype to compute in. Raises :class:`WeightsError` for any other than the two usable."""
    if name not in COMPUTE_DTYPES:
        raise WeightsError(
            f"dtype {name!r} is not supported; use bfloat16 or float32 (the model overflows in "
            f"float16)"
        )
    return COMPUTE_DTYPES[name]


def model_folder(source: str | Path) -> Path:
    """The folder of a model given as a local path or as a hub id (``owner/name``).

    Downloads configuration, vocabulary and safetensors files only. Raises :class:`WeightsError`.
    """
    folder = Path(source)
    if folder.is_dir():
        return folder
    if not HUB_ID.fullmatch(str(source)):
        raise WeightsError(f"{source}: no such folder, and no hub id of the form owner/name")
    # Not every installation loads from the hub.
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(str(source), allow_patterns=list(HUB_FILES)))
    except Exception as fault:  # what a lost connection raises is its HTTP client's own
        if _of_this_machine(fault):
            raise
        raise _not_given(source, fault) from fault


def _of_this_machine(fault: Exception) -> bool:
    # The numbers of TLS are others: its 1 is no EPERM.
    if not isinstance(fault, OSError) or isinstance(fault, ssl.SSLError):
        return False
    return fault.errno in OF_THIS_MACHINE


def _not_given(source: str | Path, fault: Exception) -> WeightsError:
    why = " ".join(str(fault).split())
    return WeightsError(
        f"{source} is no local folder, and the hub did not give it: {why} Without a "
        f"connection, download the folder elsewhere and name it"
    )


def _unobserved(elements: int) -> None:
    """Nobody waits."""


def load_tensors(
    folder: Path,
    specs: Specs,
    *,
    prefix: str = "",
    ignored: Sequence[str] = (),
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
    loaded: Callable[[int], None] = _unobserved,
) -> Tensors:
    """Read the tensors of ``specs`` from the safetensors files of a folder.

    ``prefix`` stands before every name in the file. Names starting with one of ``ignored`` may be
    present besides; any other extra name is refused. ``dtype`` None keeps the stored dtype.
    ``loaded`` is told the elements of each tensor that has been read.

    Raises :class:`WeightsError` for a missing or partial folder, for names or shapes of another
    architecture and for dtypes other than float32 and bfloat16, and ConfigError for an index that
    is none.
    """
    files = _files(folder)
    wanted = {prefix + name: spec for name, spec in specs.items()}
    owners: dict[str, Path] = {}
    for file in files:
        owners |= dict.fromkeys(_names(file), file)
    _check_names(folder, set(owners), set(wanted), tuple(ignored))
    tensors: Tensors = {}
    for file in files:
        with safe_open(file, framework="pt", device=str(device)) as archive:
            for name in (name for name in wanted if owners[name] == file):
                _check_entry(file, name, archive.get_slice(name), wanted[name])
                tensor = archive.get_tensor(name)
                tensors[name.removeprefix(prefix)] = tensor.to(dtype or tensor.dtype)
                loaded(wanted[name].size)
    return tensors


def random_tensors(
    specs: Specs,
    seed: int,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    loaded: Callable[[int], None] = _unobserved,
) -> Tensors:
    """Random stand-ins for a checkpoint, equal for equal seed, device type and specs. ``loaded`` as
    in :func:`load_tensors`."""
    generator = torch.Generator(device).manual_seed(seed)
    tensors: Tensors = {}
    for name, spec in specs.items():
        tensor = torch.empty(spec.shape, device=device, dtype=torch.float32)
        if spec.positive:
            low, high = spec.mean - spec.deviation, spec.mean + spec.deviation
            tensor.uniform_(low, high, generator=generator)
        else:
            tensor.normal_(spec.mean, spec.deviation, generator=generator)
        tensors[name] = tensor.to(dtype)
        loaded(spec.size)
    return tensors


def _files(folder: Path) -> list[Path]:
    """The safetensors files of a folder; with an index, exactly those it lists."""
    if not folder.is_dir():
        raise WeightsError(
            f"{folder} does not exist; it must hold config.json and model.safetensors"
        )
    index = folder / "model.safetensors.index.json"
    if index.exists():
        named = read_table(index, "a model in several files").table("weight_map")
        names = {named.text(tensor) for tensor in named.content}
        if odd := sorted(name for name in names if name in ("", "..") or Path(name).name != name):
            raise WeightsError(f"{index}: {odd[0]!r} is no file of this folder")
        files = [folder / name for name in sorted(names)]
    else:
        files = [folder / "model.safetensors"]
    for file in files:
        if not file.is_file():
            raise WeightsError(f"{folder} is partial: {file.name} is missing; download it again")
    return files


def _names(file: Path) -> list[str]:
    """The tensors of a file. A cut or foreign file shows in its header."""
    try:
        with safe_open(file, framework="pt") as archive:
            return list(archive.keys())
    except SafetensorError as fault:
        raise WeightsError(f"{file} is no complete safetensors file: {fault}") from None


def _check_names(folder: Path, found: set[str], wanted: set[str], ignored: tuple[str, ...]) -> None:
    missing = sorted(wanted - found)
    if missing:
        raise WeightsError(
            f"{folder} lacks {len(missing)} of the {len(wanted)} tensors its config.json implies: "
            f"{_some(missing)}; the download is partial or the architecture is another"
        )
    extra = sorted(name for name in found - wanted if not name.startswith(ignored))
    if extra:
        raise WeightsError(
            f"{folder} holds {len(extra)} tensors unknown to this architecture: {_some(extra)}"
        )


def _check_entry(file: Path, name: str, entry: object, spec: TensorSpec) -> None:
    shape, stored = tuple(entry.get_shape()), entry.get_dtype()  # type: ignore[attr-defined]
    if shape != spec.shape:
        raise WeightsError(
            f"{file}: {name} has shape {list(shape)}; config.json implies {list(spec.shape)}"
        )
    if stored not in STORED_DTYPES:
        raise WeightsError(f"{file}: {name} is stored as {stored}; usable are F32 and BF16")


def _some(names: Sequence[str]) -> str:
    dots = ", …" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + dots
