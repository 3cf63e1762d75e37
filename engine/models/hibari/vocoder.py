"""Source-filter synthesis of the voice, streamed exactly (hibari-tts 0.2.1, "dsp").

A frame's spectrum is harmonic filter x STFT of a pulse train + shaped noise + a free part; the
waveform is the overlap-add of inverse transforms (window 1200, hop 300, periodic Hann). What a
whole-sentence synthesis computes in one piece is carried here from chunk to chunk: the phase of
the pulse train, the pulses under the next windows, the last three windowed frames, the noise
generator. All arrays are frame-major, float32 unless said otherwise.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import scipy.fft
from playhead.engine.models.hibari.shape import BINS, FFT, HOP, OVERLAP, SAMPLE_RATE

Floats = npt.NDArray[np.float32]
Spectra = npt.NDArray[np.complex64]

BEHIND = OVERLAP // 2  # a window reaches two frames back from its frame ...
AHEAD = OVERLAP // 2  # ... and a sample needs the windows of the two frames that follow
VOICED_ABOVE = 40.0  # Hz
HIGHEST_HARMONIC = 11000.0  # Hz

_NOISE = np.random.Generator(np.random.SFC64(0)).standard_normal(1 << 20, dtype=np.float32)
"""Gaussian noise to draw from: a slice of it at a random place costs a fortieth of fresh values."""
_NOISE_ROWS = np.lib.stride_tricks.sliding_window_view(_NOISE, 2 * BINS)
_WINDOW = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT) / FFT)).astype(np.float32)
_ANALYSIS = _WINDOW / np.float32(FFT / 4)  # a unit cosine then has magnitude 1 in its bin
_COVER = (_WINDOW * _WINDOW).reshape(OVERLAP, HOP)


@dataclass(slots=True)
class PulseTrain:
    """Band-limited pulses following f0 [F] in Hz: every harmonic at unit amplitude; 0 unvoiced."""

    f0: Floats
    made: int = 0  # frames whose phase has been summed
    phase: float = 0.0  # running sum of f0 over samples, Hz: float64 keeps hours exact
    kept: Floats = field(default_factory=lambda: np.zeros((0, HOP), np.float32))
    kept_from: int = 0  # frame of kept[0]

    def frames(self, start: int, stop: int) -> Floats:
        """Pulses of frames [start, stop): [stop - start, 300]; silence outside the segment.

        ``start`` must not go back between calls.
        """
        lower, upper = max(start, 0), min(stop, len(self.f0))
        if lower > self.made:
            self._advance_to(lower)
        fresh = self._make(upper) if upper > self.made else self.kept[:0]
        kept = self.kept[max(0, lower - self.kept_from) :]
        self.kept = np.concatenate([kept, fresh]) if len(fresh) else kept
        self.kept_from = lower
        inside = self.kept[: max(0, upper - lower)]
        if len(inside) == stop - start:
            return inside
        return np.pad(inside, ((min(lower, stop) - start, stop - max(upper, start)), (0, 0)))

    def _advance_to(self, frame: int) -> None:
        """Only sums the phase: pulses of a trimmed lead are never heard."""
        pitch = self._pitch(self.made, frame)
        self.phase = self._sum(np.maximum(pitch, VOICED_ABOVE))[-1]
        self.made, self.kept, self.kept_from = frame, self.kept[:0], frame

    def _make(self, stop: int) -> Floats:
        pitch = self._pitch(self.made, stop)
        voiced = pitch > VOICED_ABOVE
        np.maximum(pitch, VOICED_ABOVE, out=pitch)
        total = self._sum(pitch)
        self.phase, self.made = float(total[-1]), stop
        if not voiced.any():
            return np.zeros((len(pitch) // HOP, HOP), np.float32)
        turns = total / SAMPLE_RATE
        turns -= np.floor(turns)
        angle = (turns * (2 * np.pi)).astype(np.float32)
        pulses = _dirichlet(angle, np.floor(HIGHEST_HARMONIC / pitch) + np.float32(0.5))
        pulses *= voiced
        return pulses.reshape(-1, HOP)

    def _sum(self, pitch: Floats) -> npt.NDArray[np.float64]:
        steps = pitch.astype(np.float64)
        steps[0] += self.phase
        return np.cumsum(steps, out=steps)

    def _pitch(self, start: int, stop: int) -> Floats:
        """f0 per sample, linear between frame centres, held at the segment's ends: [n * 300]."""
        index = np.clip(np.arange(start - 1, stop + 1), 0, len(self.f0) - 1)
        near = self.f0[index].astype(np.float32, copy=False)
        before, here, after = near[:-2, None], near[1:-1, None], near[2:, None]
        pitch = np.empty((stop - start, HOP), np.float32)
        pitch[:, : HOP // 2] = before * _FALLING[: HOP // 2] + here * _RISING[: HOP // 2]
        pitch[:, HOP // 2 :] = here * _FALLING[HOP // 2 :] + after * _RISING[HOP // 2 :]
        return pitch.reshape(-1)


_RISING = (((np.arange(HOP) + 0.5) / HOP - 0.5) % 1.0).astype(np.float32)
_FALLING = (1.0 - _RISING).astype(np.float32)


def _dirichlet(angle: Floats, order: Floats) -> Floats:
    """Sum of cos(h * angle) for h = 1 .. order - 1/2, in closed form; its limit near angle 0."""
    denominator = np.sin(angle * np.float32(0.5))
    denominator *= 2
    flat = np.abs(denominator) <= 2e-3
    pulses: Floats = np.sin(order * angle)
    denominator[flat] = 1.0
    pulses /= denominator
    np.copyto(pulses, order, where=flat)
    pulses -= np.float32(0.5)
    return pulses


@dataclass(slots=True)
class Voicing:
    """What the synthesis of one segment carries from chunk to chunk."""

    pulses: PulseTrain
    random: np.random.Generator
    frames: int  # of the segment
    front: int  # next frame to be analysed
    recent: Floats = field(default_factory=lambda: np.zeros((0, FFT), np.float32))


def excite(voicing: Voicing, count: int) -> tuple[Floats, Spectra]:
    """Windowed pulses [count, 1200] and complex noise [count, 601] of the next frames."""
    start = voicing.front - BEHIND
    pulses = voicing.pulses.frames(start, voicing.front + count + AHEAD - 1).reshape(-1)
    step = pulses.strides[0]
    windows = np.lib.stride_tricks.as_strided(
        pulses, (count, FFT), (HOP * step, step), writeable=False
    )
    drawn = _NOISE_ROWS[voicing.random.integers(0, len(_NOISE_ROWS), count)]
    return windows * _ANALYSIS, drawn.view(np.complex64)


def render(windows: Floats, noise: Spectra, parts: list[Floats]) -> Floats:
    """Windowed waveform frames [n, 1200] from :func:`excite`'s output and the decoder's parts.

    ``parts``: five arrays [n, 601] in the order of graphs.SPECTRA. ``noise`` is overwritten.
    """
    harmonic_cos, harmonic_sin, noise_gain, free_cos, free_sin = parts
    spectrum = scipy.fft.rfft(windows, axis=1, overwrite_x=True)
    turn = np.empty_like(spectrum)
    turn.real, turn.imag = harmonic_cos, harmonic_sin
    spectrum *= turn
    noise *= noise_gain
    spectrum += noise
    spectrum.real += free_cos
    spectrum.imag += free_sin
    frames: Floats = scipy.fft.irfft(spectrum, n=FFT, axis=1, overwrite_x=True)
    frames *= _WINDOW
    return frames


def overlap_add(voicing: Voicing, fresh: Floats) -> Floats:
    """Adds windowed frames [n, 1200] to the stream; returns all samples now complete.

    [n - 3, 300] at the first call, [n, 300] later. The sum has the same order for any chunking.
    """
    first = voicing.front
    _silence_outside(fresh, first, voicing.frames)
    joined = np.concatenate([voicing.recent, fresh]).reshape(-1, OVERLAP, HOP)
    count = len(joined) - OVERLAP + 1
    out: Floats = joined[3:, 0] + joined[2:-1, 1]
    out += joined[1:-2, 2]
    out += joined[:-3, 3]
    voicing.recent = joined[-3:].reshape(-1, FFT)
    voicing.front = first + len(fresh)
    _normalise(out, voicing.front - AHEAD - count, voicing.frames)
    return out


def _silence_outside(fresh: Floats, first: int, frames: int) -> None:
    if first < 0:
        fresh[:-first] = 0.0
    if first + len(fresh) > frames:
        fresh[max(0, frames - first) :] = 0.0


def _normalise(out: Floats, first: int, frames: int) -> None:
    """Divides by the windows' summed square: 1.5 inside, less where the segment ends."""
    out *= np.float32(1 / 1.5)
    for frame in {0, frames - 2, frames - 1} & set(range(first, first + len(out))):
        present = [part for part in range(OVERLAP) if 0 <= frame + BEHIND - part < frames]
        out[frame - first] *= 1.5 / np.maximum(_COVER[present].sum(0), 1e-11)
