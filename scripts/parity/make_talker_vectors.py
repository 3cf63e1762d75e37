"""Record what the reference implementation says about the tiny talkers of the tests.

Run in an environment of its own that holds ``qwen-tts==0.1.1``, ``transformers==4.57.3``, torch and
this package; writes talker.npz and talker_speaker.npz to tests/vectors/qwen3_tts (arguments
``talkers`` or ``speaker``: only one of them). One thread (OMP_NUM_THREADS=1) is fastest. Weights
are not recorded: they are random with a fixed seed (tests/engine/models/talker_kit.py).
"""

import sys
import tempfile
import types
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "engine" / "models"))
# Only the tokenizer of another model, imported along, needs these. They come after transformers,
# which looks for some of them.
for name in ("sox", "onnxruntime", "torchaudio", "torchaudio.compliance.kaldi"):
    stub = types.ModuleType(name)
    stub.__spec__ = ModuleSpec(name, None)
    sys.modules.setdefault(name, stub)
sys.modules.setdefault("torchaudio.compliance", types.ModuleType("torchaudio.compliance"))

import talker_kit as kit  # noqa: E402
from qwen_tts.core.models import (  # noqa: E402
    Qwen3TTSConfig,
    Qwen3TTSForConditionalGeneration,
)
from qwen_tts.core.models.modeling_qwen3_tts import mel_spectrogram  # noqa: E402

LEAST_FRAMES = 30


def reference(case: kit.Case, folder: Path) -> Any:
    """The reference model with the case's random weights."""
    content = {k: v for k, v in kit.model_dict(case.kind, case.form).items() if k != "model_type"}
    config = Qwen3TTSConfig(**content)
    config._attn_implementation = "eager"
    model = Qwen3TTSForConditionalGeneration._from_config(config, attn_implementation="eager")
    state = kit.checkpoint(kit.model_config(case.kind, case.form, folder), case.weights)
    report = model.load_state_dict(state, strict=False)
    left = [name for name in report.missing_keys if not name.startswith("speaker_encoder.")]
    assert not report.unexpected_keys, report.unexpected_keys
    assert not left, left
    return model.eval().float()


def speak(model: Any, case: kit.Case) -> tuple[list[Any], list[Any]]:
    """Greedy codes and hidden states of the case's batch."""

    def row(*ids: int) -> torch.Tensor:
        return torch.tensor([ids])

    spoken = case.spoken
    arguments: dict[str, Any] = {
        "input_ids": [row(*kit.ROLE, *one.text_ids(), *kit.TAIL) for one in spoken],
        "instruct_ids": [row(*one.instruct_ids()) if one.instruct else None for one in spoken],
        "languages": [one.language for one in spoken],
        "speakers": [one.voice or None for one in spoken],
        "non_streaming_mode": case.full,
        "do_sample": False,
        "subtalker_dosample": False,
        "repetition_penalty": 1.05,
        "max_new_tokens": kit.MOST_FRAMES + 1,
    }
    if case.kind == "base":
        codes = [one.reference_codes() for one in spoken]
        arguments["voice_clone_prompt"] = {
            "ref_code": [None if code is None else torch.from_numpy(code) for code in codes],
            "ref_spk_embedding": [torch.from_numpy(one.speaker_vector()) for one in spoken],
            "x_vector_only_mode": [code is None for code in codes],
            "icl_mode": [code is not None for code in codes],
        }
        arguments["ref_ids"] = [row(*kit.ROLE, *one.reference_ids(), 501, 198) for one in spoken]
    codes, hidden = model.generate(**arguments)
    return codes, hidden


def record_talkers(folder: Path) -> None:
    """Codes and hidden states of every case."""
    arrays: dict[str, Any] = {}
    for case in kit.cases():
        codes, hidden = speak(reference(case, folder), case)
        for index, (code, state) in enumerate(zip(codes, hidden, strict=True)):
            assert len(code) >= LEAST_FRAMES, f"{case.name}/{index}: {len(code)} frames"
            arrays[f"{case.name}/{index}/codes"] = code.numpy().astype(np.int16)
            arrays[f"{case.name}/{index}/hidden"] = state.numpy().astype(np.float32)
            print(case.name, index, len(code), flush=True)
    np.savez_compressed(kit.VECTORS / "talker.npz", **arrays)


def record_speaker(folder: Path) -> None:
    """Log-mel frames of a made-up recording, and the vector that the tiny encoder gives it."""
    case = next(case for case in kit.cases() if case.kind == "base")
    model = reference(case, folder)
    pcm = kit.recording()
    mel = mel_spectrogram(
        torch.from_numpy(pcm)[None],
        n_fft=1024,
        num_mels=128,
        sampling_rate=kit.RECORDING_RATE,
        hop_size=256,
        win_size=1024,
        fmin=0,
        fmax=12_000,
    )
    model.speaker_encoder.load_state_dict(
        {
            name.removeprefix("speaker_encoder."): tensor
            for name, tensor in kit.speaker_checkpoint(folder).items()
        }
    )
    vector = model.extract_speaker_embedding(pcm, kit.RECORDING_RATE)
    np.savez_compressed(
        kit.VECTORS / "talker_speaker.npz", mel=mel[0].numpy(), vector=vector.detach().numpy()
    )


def main() -> None:
    wanted = sys.argv[1:] or ["talkers", "speaker"]
    kit.VECTORS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if "talkers" in wanted:
            record_talkers(Path(folder))
        if "speaker" in wanted:
            record_speaker(Path(folder))


if __name__ == "__main__":
    main()
