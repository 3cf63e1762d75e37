"""Opus (RFC 6716) through opuslib, with the guards that opuslib lacks.

The only module that imports opuslib, and only when Opus is first asked for: without the libopus
shared library every other codec still works.

Settings, judged on 16 s of the bundled voice (one core of a 2-core x86-64 server, libopus 1.3.1,
24 kHz, 32 kbit/s; error = log-spectral distance between input and decoded output):

    complexity      0     3     5     8    10
    CPU ms/s        5     7     9    17    17      encoding, per second of audio
    error dB     3.01  2.89  2.83  2.76  2.76

Complexity 5 has most of the quality at half the CPU of 10. Application "audio" is chosen over
"voip", whose high-pass filter and formant emphasis are meant for microphones and change a clean
voice (signal-to-noise 6.7 dB against 11.0 dB at equal bit rate, CPU and log-spectral distance);
the signal type is set to voice all the same. Packets last 20 ms. DTX and FEC stay off: the
transport loses nothing, and every packet must decode to its full length.
"""

import ctypes
import ctypes.util
import functools
import os
import re
import warnings
from typing import Any

import numpy as np

from .base import NOTHING, BadAudio, Encoded, Pcm, clean

BITRATES = {8000: 16000, 16000: 24000, 24000: 32000, 48000: 32000}  # Hz: bit/s, mono speech
SAMPLE_RATES = tuple(BITRATES)
COMPLEXITY = 5
PACKETS_PER_SECOND = 50
SIGNAL_VOICE = 3001  # OPUS_SIGNAL_VOICE in opus_defines.h

INSTALL_HINT = (
    "Opus needs the libopus shared library, which could not be loaded ({reason}). Install it "
    "(Debian, Ubuntu: apt-get install libopus0; Fedora: dnf install opus; macOS: brew install "
    "opus) and start again. All other codecs work without it"
)


class OpusUnavailable(RuntimeError):
    """libopus or opuslib cannot be loaded; the message says what to install."""


class OpusFault(RuntimeError):
    """libopus refused a call; the message is libopus' own."""


LOOKUP = 16
"""Descriptors that looking for a library may need: ctypes asks ldconfig and a compiler."""


def _load() -> Any | str:
    """The opuslib package, or the reason why there is none. Decided once per process, and not while
    descriptors are wanting, which passes."""
    if not _find.cache_info().currsize and (shortage := _shortage()):
        return shortage
    try:
        return _find()
    except OSError as error:  # somebody else took them meanwhile
        return str(error)


def _shortage() -> str | None:
    """Why nothing could have been found, if there are too few descriptors for a look."""
    free: list[int] = []
    try:
        for _ in range(LOOKUP):
            free.append(os.open(os.devnull, os.O_RDONLY))  # noqa: PERF401 - kept if one fails
    except OSError as error:
        return str(error)
    finally:
        for descriptor in free:
            os.close(descriptor)
    return None


@functools.cache
def _find() -> Any | str:
    if ctypes.util.find_library("opus") is None:
        return "it was not found"
    try:
        with warnings.catch_warnings():
            # opuslib compares integers with `is`, which newer compilers warn about.
            warnings.simplefilter("ignore", SyntaxWarning)
            import opuslib
            import opuslib.api.decoder
            import opuslib.api.encoder
            import opuslib.api.info
    except (ImportError, OSError) as error:
        return str(error)
    # opus_encoder_ctl is variadic. On ABIs that pass variadic arguments differently (Apple
    # arm64) ctypes gets the call right only when it knows which arguments are fixed.
    encoder = opuslib.api.encoder
    encoder.libopus_ctl.argtypes = (encoder.EncoderPointer, ctypes.c_int)
    return opuslib


def _library() -> Any:
    library = _load()
    if isinstance(library, str):
        raise OpusUnavailable(INSTALL_HINT.format(reason=library))
    return library


def unavailable() -> str | None:
    """Why Opus cannot be used here, or None when it can."""
    reason = _load()
    return INSTALL_HINT.format(reason=reason) if isinstance(reason, str) else None


def explain(error: Any) -> str:
    """Text of an ``opuslib.OpusError``, whose own ``str`` raises after a failed encode.

    Its code is a libopus error code, or a sentence that contains one.
    """
    code = int(re.sub(r"[^-\d]", "", str(error.code)))
    text: bytes = _library().api.info.strerror(code)
    return f"{text.decode()} (libopus error {code})"


def packet_samples(sample_rate: int) -> int:
    """Samples of one packet (20 ms)."""
    return sample_rate // PACKETS_PER_SECOND


@functools.cache
def pre_skip(sample_rate: int) -> int:
    """Samples at ``sample_rate`` by which decoded audio is late: the encoder's lookahead.

    RFC 7845 section 4.2 counts the same delay at 48 kHz. Where Opus codes low and high bands
    apart (24 and 48 kHz) its low band then leads by about 50 microseconds. Raises
    ``OpusUnavailable``.
    """
    return PacketEncoder(sample_rate).lookahead


class PacketEncoder:
    """One libopus encoder, mono. Not to be shared between streams or threads.

    Raises ``OpusUnavailable`` without libopus, ``OpusFault`` for a rate that Opus does not have.
    """

    def __init__(self, sample_rate: int) -> None:
        self._opus = _library()
        self.packet_samples = packet_samples(sample_rate)
        try:
            self._encoder = self._opus.Encoder(sample_rate, 1, "audio")
            self._encoder.bitrate = BITRATES[sample_rate]
            self._encoder.complexity = COMPLEXITY
            self._encoder.signal = SIGNAL_VOICE
            self._encoder.vbr = 1
            self.lookahead: int = self._encoder.lookahead
        except self._opus.OpusError as error:
            raise OpusFault(f"cannot open an Opus encoder: {explain(error)}") from error

    def encode(self, pcm: Pcm) -> bytes:
        """float32 [packet_samples] to one packet.

        Raises ``ValueError`` for any other length (libopus would read past the end), and
        ``OpusFault``.
        """
        if pcm.dtype != np.float32 or pcm.shape != (self.packet_samples,):
            raise ValueError(
                f"an Opus packet takes float32 [{self.packet_samples}], not "
                f"{pcm.dtype} {list(pcm.shape)}"
            )
        try:
            packet: bytes = self._encoder.encode_float(pcm.tobytes(), self.packet_samples)
        except self._opus.OpusError as error:
            raise OpusFault(f"Opus encoding failed: {explain(error)}") from error
        return packet


class OpusPacker:
    """Wire-rate samples of one utterance to Opus packets of 20 ms, with exact sample counts."""

    def __init__(self, sample_rate: int) -> None:
        self._encoder = PacketEncoder(sample_rate)
        self.pre_skip = self._encoder.lookahead
        self._pending = np.zeros(0, np.float32)
        self._taken = 0  # samples given to pack
        self._coded = 0  # samples inside packets
        self._playable = 0  # samples announced so far

    def pack(self, pcm: Pcm) -> Encoded:
        """Take float32 [n] in -1..1; give the packets that are full."""
        self._taken += len(pcm)
        pending = np.concatenate((self._pending, pcm))
        whole = len(pending) - len(pending) % self._encoder.packet_samples
        self._pending = pending[whole:].copy()
        return self._encode(pending[:whole])

    def finish(self) -> Encoded:
        """Push the last samples through the encoder's lookahead with silence."""
        if not self._taken:
            return NOTHING
        short = -(self._taken + self.pre_skip) % self._encoder.packet_samples
        silence = np.zeros(self.pre_skip + short, np.float32)
        return self._encode(np.concatenate((self._pending, silence)))

    def _encode(self, pcm: Pcm) -> Encoded:
        size = self._encoder.packet_samples
        packets = [self._encoder.encode(pcm[at : at + size]) for at in range(0, len(pcm), size)]
        self._coded += len(pcm)
        playable = max(0, min(self._coded - self.pre_skip, self._taken))
        added, self._playable = playable - self._playable, playable
        return Encoded(b"".join(packets), added, tuple(map(len, packets)))


class OpusDecoder:
    """Decodes one utterance; see ``base.Decoder``.

    ``pre_skip`` is in samples at ``sample_rate``. Raises ``OpusUnavailable``, and ``OpusFault``
    for a rate that Opus does not have.
    """

    def __init__(self, sample_rate: int, pre_skip: int) -> None:
        self._opus = _library()
        self._packet_samples = packet_samples(sample_rate)
        self._skip = pre_skip
        try:
            self._decoder = self._opus.Decoder(sample_rate, 1)
        except self._opus.OpusError as error:
            raise OpusFault(f"cannot open an Opus decoder: {explain(error)}") from error

    def decode(self, data: bytes, packets: tuple[int, ...], samples: int) -> Pcm:
        """Packets of one message to float32 [samples]; see ``base.Decoder``."""
        if sum(packets) != len(data) or any(length < 1 for length in packets):
            raise BadAudio(f"packets of {list(packets)} bytes do not add up to {len(data)} bytes")
        ends = np.cumsum(packets, dtype=int)
        decoded = [self._packet(data[end - n : end]) for n, end in zip(packets, ends, strict=True)]
        pcm = np.concatenate([np.zeros(0, np.float32), *decoded])
        dropped = min(self._skip, len(pcm))
        self._skip -= dropped
        if not 0 <= samples <= len(pcm) - dropped:
            raise BadAudio(
                f"{len(packets)} Opus packets hold {len(pcm) - dropped} playable samples, "
                f"not the announced {samples}"
            )
        return clean(pcm[dropped : dropped + samples])[0]

    def _packet(self, packet: bytes) -> Pcm:
        try:
            raw: bytes = self._decoder.decode_float(packet, self._packet_samples)
        except self._opus.OpusError as error:
            raise BadAudio(f"not an Opus packet of 20 ms: {explain(error)}") from error
        pcm = np.frombuffer(raw, np.float32)
        if len(pcm) != self._packet_samples:
            raise BadAudio(
                f"an Opus packet holds {len(pcm)} samples, not {self._packet_samples} (20 ms)"
            )
        return pcm
