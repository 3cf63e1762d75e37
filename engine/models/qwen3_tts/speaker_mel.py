"""Reference audio to log-mel frames, and what reference audio must be like."""

import numpy as np
import numpy.typing as npt
import torch
from playhead.engine.models.qwen3_tts.prompt import PromptError
from playhead.engine.types import Pcm
from torch import Tensor
from torch.nn import functional as F

WINDOW = 1024
HOP = 256
HIGHEST = 12_000.0
"""Hz; the lowest is 0."""
SHORTEST, LONGEST = 1.0, 60.0
"""Seconds of reference audio."""
QUIETEST = 10 ** (-50 / 20)
"""Peak below which a recording counts as silent: -50 dBFS."""
FLOOR = 1e-5
_LINEAR_HZ = 1000.0
_HZ_PER_MEL = 200.0 / 3.0
_LOG_STEP = np.log(6.4) / 27.0
_HIGHEST_MEL = _LINEAR_HZ / _HZ_PER_MEL + np.log(HIGHEST / _LINEAR_HZ) / _LOG_STEP


def check_audio(pcm: npt.NDArray[np.generic], rate: int, wanted_rate: int) -> Pcm:
    """Reference audio as float32 [samples], or PromptError saying what is wrong with it."""
    if pcm.ndim != 1:
        raise PromptError(
            f"reference audio has shape {list(pcm.shape)}: one channel is needed, mix it to mono"
        )
    if rate != wanted_rate:
        raise PromptError(
            f"reference audio is at {rate} Hz: {wanted_rate} Hz is needed, resample it"
        )
    if pcm.dtype.kind != "f":
        raise PromptError(f"reference audio is {pcm.dtype}: floats within -1..1 are needed")
    seconds = len(pcm) / rate
    if not SHORTEST <= seconds <= LONGEST:
        what = "short" if seconds < SHORTEST else "long"
        raise PromptError(
            f"reference audio of {seconds:.2f} s is too {what}: {SHORTEST:g} to {LONGEST:g} s are "
            f"accepted"
        )
    peak = float(np.abs(pcm).max())
    if not peak <= 1.0:
        raise PromptError(f"reference audio reaches {peak:g}: samples must be within -1..1")
    if peak < QUIETEST:
        raise PromptError("reference audio is silent: its peak is below -50 dBFS")
    return pcm.astype(np.float32)


def log_mel(pcm: Tensor, rate: int, mels: int) -> Tensor:
    """Natural logarithm of the mel magnitudes: float32 [mels, frames] of ``pcm`` [samples].

    Frames of 1024 samples under a Hann window, 256 apart; the ends are mirrored so that each frame
    is centred on its hop.
    """
    padding = (WINDOW - HOP) // 2
    padded = F.pad(pcm[None, None], (padding, padding), mode="reflect")[0, 0]
    frames = padded.unfold(0, WINDOW, HOP) * torch.hann_window(WINDOW, device=pcm.device)
    spectrum = torch.fft.rfft(frames)
    magnitude = (spectrum.real.square() + spectrum.imag.square() + 1e-9).sqrt()
    filters = torch.from_numpy(mel_filters(rate, mels)).to(pcm.device)
    return (filters @ magnitude.T).clamp(min=FLOOR).log()


def mel_filters(rate: int, mels: int) -> npt.NDArray[np.float32]:
    """Triangles of unit area on the Slaney mel scale (Auditory Toolbox, 1998): linear up to
    1 kHz, logarithmic above. [mels, WINDOW // 2 + 1]"""
    bins = np.linspace(0.0, rate / 2, WINDOW // 2 + 1)
    corners = _to_hz(np.linspace(0.0, _HIGHEST_MEL, mels + 2))
    low, centre, high = (corners[i : i + mels, None] for i in range(3))
    rising = (bins - low) / (centre - low)
    falling = (high - bins) / (high - centre)
    triangles = np.maximum(0.0, np.minimum(rising, falling))
    return (triangles * 2.0 / (high - low)).astype(np.float32)


def _to_hz(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    knee = _LINEAR_HZ / _HZ_PER_MEL
    above = _LINEAR_HZ * np.exp(_LOG_STEP * (np.maximum(mel, knee) - knee))
    return np.where(mel < knee, mel * _HZ_PER_MEL, above)
