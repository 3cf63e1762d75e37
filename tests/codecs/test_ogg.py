"""Ogg pages: checked by hand, and by a decoder that is not ours."""

import io

import pytest
from playhead.codecs.ogg import FIRST, LAST, OggOpusWriter, checksum, lacing


def writer() -> OggOpusWriter:
    return OggOpusWriter(24_000, 156, serial=7, vendor="test")


def pages(data: bytes) -> list[dict[str, object]]:
    found = []
    while data:
        assert data[:5] == b"OggS\0"
        count = data[26]
        size = sum(data[27 : 27 + count])
        end = 27 + count + size
        blank = data[:22] + bytes(4) + data[26:end]
        assert int.from_bytes(data[22:26], "little") == checksum(blank)
        found.append(
            {
                "flags": data[5],
                "granule": int.from_bytes(data[6:14], "little"),
                "serial": int.from_bytes(data[14:18], "little"),
                "number": int.from_bytes(data[18:22], "little"),
                "lacing": list(data[27 : 27 + count]),
                "body": data[27 + count : end],
            }
        )
        data = data[end:]
    return found


def test_the_checksum_is_that_of_the_specification() -> None:
    # The check value of CRC-32 with this polynomial, unreflected, initial and final zero.
    assert checksum(b"123456789") == 0x89A1897F


@pytest.mark.parametrize(
    ("length", "segments"), [(0, [0]), (254, [254]), (255, [255, 0]), (600, [255, 255, 90])]
)
def test_lacing_ends_below_255(length: int, segments: list[int]) -> None:
    assert list(lacing(length)) == segments


def test_the_headers_say_what_follows() -> None:
    first, second = pages(writer().head())
    assert (first["flags"], first["granule"], first["number"]) == (FIRST, 0, 0)
    assert first["body"] == b"OpusHead\x01\x01\x38\x01\xc0\x5d\0\0\0\0\0"  # 312 at 48 kHz; 24,000
    assert (second["flags"], second["number"]) == (0, 1)
    assert second["body"] == b"OpusTags\x04\0\0\0test\0\0\0\0"


def test_granules_count_at_48_khz_and_the_last_one_trims() -> None:
    ogg = writer()
    ogg.head()
    (one,) = pages(ogg.packets(b"aabbb", (2, 3), 480))
    (two,) = pages(ogg.packets(b"c", (1,), 480, last=1_000))
    assert (one["granule"], one["lacing"], one["body"]) == (1_920, [2, 3], b"aabbb")
    assert (two["granule"], two["flags"], two["number"]) == (2_312, LAST, 3)


def test_no_packets_make_no_page_but_at_the_end() -> None:
    ogg = writer()
    assert ogg.packets(b"", (), 480) == b""
    (end,) = pages(ogg.packets(b"", (), 480, last=0))
    assert (end["flags"], end["lacing"]) == (LAST, [])


def test_more_packets_than_a_page_holds_go_on_the_next() -> None:
    ogg = writer()
    first, second = pages(ogg.packets(b"x" * 300, (1,) * 300, 480, last=100_000))
    assert (len(first["lacing"]), len(second["lacing"])) == (255, 45)  # type: ignore[arg-type]
    assert (first["flags"], second["flags"]) == (0, LAST)


def test_a_decoder_reads_it() -> None:
    av = pytest.importorskip("av")
    opus = pytest.importorskip("playhead.codecs.opus")
    if opus.unavailable() is not None:
        pytest.skip("libopus is not installed")
    import numpy as np

    packer = opus.OpusPacker(24_000)
    ogg = OggOpusWriter(24_000, packer.pre_skip, serial=7, vendor="test")
    noise = np.cumsum(np.random.default_rng(1).standard_normal(24_000))
    hiss = noise - np.convolve(noise, np.ones(200) / 200, "same")
    pcm = (hiss / np.abs(hiss).max() / 2).astype(np.float32)
    spoken, rest = packer.pack(pcm), packer.finish()
    file = ogg.head() + ogg.packets(spoken.data, spoken.packets, 480)
    file += ogg.packets(rest.data, rest.packets, 480, last=24_000)
    with av.open(io.BytesIO(file)) as container:
        heard = np.concatenate([f.to_ndarray()[0] for f in container.decode(audio=0)])
    assert abs(len(heard) - 48_000) <= 2
    likeness = [
        np.corrcoef(heard[4_800 + lag : 43_200 + lag : 2], pcm[2_400:21_600])[0, 1]
        for lag in range(-8, 9)
    ]
    assert max(likeness) > 0.9
    assert abs(int(np.argmax(likeness)) - 8) <= 2
