"""Which wire codecs exist, at which rates, and how to open them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from . import g711, opus, pcm
from .base import Decoder, Encoder, Pcm
from .resample import Resampler
from .stream import SampleDecoder, SamplePacker, StreamEncoder

RATES = (8000, 16000, 22050, 24000, 44100, 48000)
OPUS = "opus"


class UnsupportedCodec(ValueError):
    """The codec is unknown, or cannot be used on this machine."""


class UnsupportedRate(ValueError):
    """The codec does not run at that sample rate."""


class FormatInfo(TypedDict):
    """One entry of ``formats``."""

    codec: str
    sample_rates: list[int]


@dataclass(frozen=True)
class Format:
    """A codec at a rate (Hz). Counts are samples at that rate; 0 without packets."""

    codec: str
    sample_rate: int
    pre_skip: int
    packet_samples: int


@dataclass(frozen=True)
class _SampleCodec:
    pack: Callable[[Pcm], bytes]
    unpack: Callable[[bytes], Pcm]
    sample_bytes: int
    rates: tuple[int, ...] = RATES
    cheap: bool = False


_SAMPLE_CODECS = {
    "pcm_s16le": _SampleCodec(pcm.pack_s16le, pcm.unpack_s16le, 2, cheap=True),
    "pcm_f32le": _SampleCodec(pcm.pack_f32le, pcm.unpack_f32le, 4, cheap=True),
    "mulaw": _SampleCodec(g711.pack_mulaw, g711.unpack_mulaw, 1, rates=(8000,)),
    "alaw": _SampleCodec(g711.pack_alaw, g711.unpack_alaw, 1, rates=(8000,)),
}


def _available() -> dict[str, tuple[int, ...]]:
    rates = {name: codec.rates for name, codec in _SAMPLE_CODECS.items()}
    if opus.unavailable() is None:
        rates[OPUS] = opus.SAMPLE_RATES
    return rates


def formats() -> list[FormatInfo]:
    """The codecs of this machine and their rates; Opus only when libopus loads."""
    return [{"codec": name, "sample_rates": list(rates)} for name, rates in _available().items()]


def open_format(codec: str, sample_rate: int) -> Format:
    """Look up a codec at a rate (Hz). Raises ``UnsupportedCodec`` and ``UnsupportedRate``, whose
    messages say what would be right."""
    available = _available()
    if codec not in available:
        reason = opus.unavailable() if codec == OPUS else f"codec {codec!r} is not known"
        raise UnsupportedCodec(f"{reason}; use one of {', '.join(available)}")
    if sample_rate not in available[codec]:
        rates = ", ".join(map(str, available[codec]))
        raise UnsupportedRate(f"{codec} does not run at {sample_rate} Hz; use one of {rates}")
    if codec == OPUS:
        pre_skip, packet_samples = opus.pre_skip(sample_rate), opus.packet_samples(sample_rate)
        return Format(codec, sample_rate, pre_skip, packet_samples)
    return Format(codec, sample_rate, 0, 0)


def encoder(fmt: Format, model_rate: int) -> Encoder:
    """An encoder for one utterance whose PCM comes at ``model_rate`` Hz."""
    if model_rate < 1:
        raise ValueError(f"the model's sample rate must be positive, not {model_rate}")
    same = fmt.sample_rate == model_rate
    resampler = None if same else Resampler(model_rate, fmt.sample_rate)
    if fmt.codec == OPUS:
        return StreamEncoder(opus.OpusPacker(fmt.sample_rate), resampler)
    return StreamEncoder(SamplePacker(_SAMPLE_CODECS[fmt.codec].pack), resampler)


def decoder(fmt: Format) -> Decoder:
    """A decoder for one utterance."""
    if fmt.codec == OPUS:
        return opus.OpusDecoder(fmt.sample_rate, fmt.pre_skip)
    codec = _SAMPLE_CODECS[fmt.codec]
    return SampleDecoder(codec.unpack, codec.sample_bytes)


def is_cheap(fmt: Format, model_rate: int) -> bool:
    """Whether encoding is fast enough for the event loop: PCM without resampling."""
    return fmt.sample_rate == model_rate and fmt.codec != OPUS and _SAMPLE_CODECS[fmt.codec].cheap
