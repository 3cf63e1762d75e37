"""Set-up of the voice: its two graphs, made once and kept in a cache.

``python -m playhead.engine.models.hibari.split`` does it ahead of time and prints one line.
"""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCE_SHA256 = "5f70741d4e900f4e85d0037498736cc1b3e1b9a63a13546a5da1e63abf4fccd8"
SPLIT_VERSION = 2
"""Goes up with every change of what :mod:`graphs` makes."""
_KEY = f"hibari-{SOURCE_SHA256[:16]}-{SPLIT_VERSION}"
_MANIFEST = "sha256.json"
_FILES = ("backbone.onnx", "decoder.onnx")


class VoiceError(RuntimeError):
    """The voice's files are missing, of another version, or cannot be prepared."""


@dataclass(frozen=True, slots=True)
class VoiceFiles:
    backbone: Path
    decoder: Path


def cache_root() -> Path:
    """``$PLAYHEAD_CACHE``, else ``playhead`` in the XDG cache directory."""
    chosen = os.environ.get("PLAYHEAD_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "playhead"


def source_path() -> Path:
    """The published graph inside the installed hibari-tts package. Raises VoiceError."""
    try:
        import hibari
    except ImportError as error:
        raise VoiceError("hibari-tts is not installed: pip install hibari-tts==0.2.1") from error
    return Path(hibari.__file__).parent / "assets" / "hibari.onnx"


def ensure_voice(cache_dir: Path | None = None) -> VoiceFiles:
    """Checked files of the voice, made first where they are missing or damaged.

    Safe beside other processes doing the same. Raises VoiceError, OSError (cache not writable).
    """
    target = (cache_root() if cache_dir is None else cache_dir) / _KEY
    if not _is_sound(target):
        _make(target)
    return VoiceFiles(*(target / name for name in _FILES))


def prepared() -> bool:
    """Whether the cache holds the voice, whole."""
    return _is_sound(cache_root() / _KEY)


def _is_sound(folder: Path) -> bool:
    try:
        recorded = json.loads((folder / _MANIFEST).read_text("utf-8"))
        return bool(recorded == {name: _sha256(folder / name) for name in _FILES})
    except (OSError, ValueError):
        return False


def _make(target: Path) -> None:
    source = source_path()
    found = _sha256(source)
    if found != SOURCE_SHA256:
        raise VoiceError(
            f"{source} has sha256 {found}, expected {SOURCE_SHA256}: "
            "this version works with hibari-tts 0.2.1 only"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=target.name, dir=target.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir()
        _split(source, made)
        _publish(made, target)


def _split(source: Path, folder: Path) -> None:
    # Imported here: a start from a filled cache needs neither its 0.3 s nor its memory.
    import onnx
    from playhead.engine.models.hibari.graphs import build_decoder, extract_backbone

    model = onnx.load(source)
    onnx.save(extract_backbone(model), folder / _FILES[0])
    onnx.save(build_decoder(model), folder / _FILES[1])
    recorded = {name: _sha256(folder / name) for name in _FILES}
    (folder / _MANIFEST).write_text(json.dumps(recorded, indent=1), "utf-8")


def _publish(made: Path, target: Path) -> None:
    """Rename into place. Losing the race to another process is fine when its files are sound."""
    try:
        os.replace(made, target)
    except OSError:
        if _is_sound(target):
            return
        shutil.rmtree(target)
        os.replace(made, target)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    files = ensure_voice()
    size = sum(path.stat().st_size for path in (files.backbone, files.decoder)) / 1e6
    print(f"voice ready: {files.backbone.parent} ({size:.1f} MB)")


if __name__ == "__main__":  # pragma: no cover
    main()
