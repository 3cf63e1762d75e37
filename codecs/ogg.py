"""Opus packets in Ogg (RFC 3533, RFC 7845), written while they arrive.

A stream is two header pages, pages of packets, and a last page whose granule position trims the
encoder's padding. Pages are not held back: each call gives what it was given, at once.
"""

import struct
from typing import Final

CAPTURE: Final = b"OggS"
VERSION: Final = 0
CONTINUED, FIRST, LAST = 1, 2, 4
MOST_SEGMENTS: Final = 255
SEGMENT: Final = 255
OPUS_CLOCK: Final = 48_000
"""Granule positions count at 48 kHz whatever the input's rate (RFC 7845, section 4)."""
POLYNOMIAL: Final = 0x04C1_1DB7


def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte << 24
        for _ in range(8):
            value = (value << 1) ^ (POLYNOMIAL if value & 0x8000_0000 else 0)
        table.append(value & 0xFFFF_FFFF)
    return tuple(table)


_TABLE: Final = _table()


def checksum(page: bytes) -> int:
    """CRC-32 of a page whose checksum field is zero: no reflection, no inversion (RFC 3533)."""
    value = 0
    for byte in page:
        value = ((value << 8) & 0xFFFF_FFFF) ^ _TABLE[(value >> 24) ^ byte]
    return value


def lacing(length: int) -> bytes:
    """Segment lengths of one packet; a packet of whole segments ends with a zero."""
    return bytes([SEGMENT] * (length // SEGMENT) + [length % SEGMENT])


class OggOpusWriter:
    """One mono logical stream. ``sample_rate`` is the input's; ``pre_skip`` counts at that rate.

    Call :meth:`head`, then :meth:`packets` any number of times, the last with ``last``.
    """

    def __init__(self, sample_rate: int, pre_skip: int, *, serial: int, vendor: str) -> None:
        self._rate = sample_rate
        self._scale = OPUS_CLOCK // sample_rate
        self._pre_skip = pre_skip * self._scale
        self._serial = serial
        self._vendor = vendor.encode()
        self._sequence = 0
        self._granule = 0

    def head(self) -> bytes:
        """The identification and the comment header, a page each (RFC 7845, section 5)."""
        head = struct.pack("<8sBBHIhB", b"OpusHead", 1, 1, self._pre_skip, self._rate, 0, 0)
        tags = struct.pack("<8sI", b"OpusTags", len(self._vendor)) + self._vendor
        tags += struct.pack("<I", 0)
        return self._page([head], 0, FIRST) + self._page([tags], 0, 0)

    def packets(
        self, data: bytes, lengths: tuple[int, ...], samples: int, *, last: int | None = None
    ) -> bytes:
        """Pages of the packets in ``data``, each of ``samples`` samples at the input's rate.

        ``last``: no more will come, and so many samples of the stream are to be played.
        """
        packets, at = [], 0
        for length in lengths:
            packets.append(data[at : at + length])
            at += length
        pages = _paginate(packets) or [[]]
        result = b""
        for number, page in enumerate(pages, 1):
            self._granule += len(page) * samples * self._scale
            ends = last is not None and number == len(pages)
            granule = self._granule
            if last is not None and ends:
                granule = min(granule, self._pre_skip + last * self._scale)
            if page or ends:
                result += self._page(page, granule, LAST if ends else 0)
        return result

    def _page(self, packets: list[bytes], granule: int, flags: int) -> bytes:
        segments = b"".join(lacing(len(packet)) for packet in packets)
        fields = (CAPTURE, VERSION, flags, granule, self._serial, self._sequence)
        self._sequence += 1
        rest = bytes([len(segments)]) + segments + b"".join(packets)
        blank = struct.pack("<4sBBqIII", *fields, 0) + rest
        return struct.pack("<4sBBqIII", *fields, checksum(blank)) + rest


def _paginate(packets: list[bytes]) -> list[list[bytes]]:
    """Whole packets on pages of at most 255 segments. Packets of 64 KiB would need splitting; no
    Opus packet of one frame is longer than 1,275 bytes (RFC 6716, section 3.2.1)."""
    pages: list[list[bytes]] = []
    used = MOST_SEGMENTS
    for packet in packets:
        need = len(packet) // SEGMENT + 1
        if used + need > MOST_SEGMENTS:
            pages.append([])
            used = 0
        pages[-1].append(packet)
        used += need
    return pages
