"""Records that carry nothing, and those that do."""

import ssl
from pathlib import Path

import pytest
from playhead.gateway.access_tls import Tls
from playhead.gateway.access_tls_records import EARNED, IDLE, PIECE, PIECES, TINY, Flooded
from test_access_tls import client_context, issue
from tls_kit import UPDATE_SIZE, Pair, Records, client_secret


def paired(folder: Path, **options: object) -> Pair:
    files = issue(folder)
    tls = Tls(Path(files["tls_cert"]), Path(files["tls_key"]))
    client = client_context(keylog_filename=str(folder / "keys.log"), **options)
    return Pair(tls.options(5.0)["ssl"], client)


def following(folder: Path) -> tuple[Pair, Records]:
    """A connection, and the records of its client, made by hand."""
    pair = paired(folder)
    return pair, Records(client_secret(folder / "keys.log"))


VERSIONS = {
    "TLS 1.3": {},
    "TLS 1.2": {"maximum_version": ssl.TLSVersion.TLSv1_2},
}


@pytest.mark.parametrize("options", VERSIONS.values(), ids=VERSIONS)
@pytest.mark.parametrize("size", [1, 6, 16_384, 40_000])
@pytest.mark.parametrize("step", [7, 1_000, 1 << 20])
def test_what_carries_something_comes_through(
    tmp_path: Path, options: dict[str, object], size: int, step: int
) -> None:
    pair = paired(tmp_path, **options)
    messages = [bytes([number % 251]) * size for number in range(max(2, 900 // size))]
    wire, got = pair.sent(*messages), b""
    for at in range(0, len(wire), step):
        pair.to_server.write(wire[at : at + step])
        got += pair.received()
    assert got == b"".join(messages)


def taken(pair: Pair, *records: bytes) -> bytes | None:
    """What they carry; None where they end the connection."""
    pair.to_server.write(b"".join(records))
    try:
        return pair.received()
    except Flooded:
        return None


def test_a_record_may_be_read_in_parts(tmp_path: Path) -> None:
    pair = paired(tmp_path)
    pair.to_server.write(pair.sent(b"abcdef"))
    assert [pair.server.read(4), pair.server.read(4)] == [b"abcd", b"ef"]
    with pytest.raises(ssl.SSLWantReadError):
        pair.server.read(4)


def test_key_updates_without_end_are_ended_early(tmp_path: Path) -> None:
    pair, client = following(tmp_path)
    assert taken(pair, *(client.update() for _ in range(1_000))) is None
    left = pair.server.pending()
    assert left == (1_000 - IDLE - 1) * UPDATE_SIZE


def test_one_at_a_time_they_are_too_and_data_is_not_saved_up(tmp_path: Path) -> None:
    pair, client = following(tmp_path)
    assert taken(pair, *(client.data(bytes(TINY)) for _ in range(1_000))) == bytes(TINY * 1_000)
    for _ in range(IDLE + 1):
        assert taken(pair, client.update()) == b""
    assert taken(pair, client.update()) is None


@pytest.mark.parametrize("size", [TINY, 64, EARNED, 2 * EARNED])
def test_a_client_may_change_its_keys_and_data_makes_up_for_it(tmp_path: Path, size: int) -> None:
    pair, client = following(tmp_path)
    assert taken(pair, *(client.update() for _ in range(IDLE))) == b""
    count = -(-EARNED // size)
    assert taken(pair, *(client.data(bytes(size)) for _ in range(count))) == bytes(size * count)
    assert taken(pair, client.update(), client.update()) == b""
    assert taken(pair, client.update()) is None


def test_tiny_records_without_end_are_ended_early(tmp_path: Path) -> None:
    pair, client = following(tmp_path)
    record = client.data(b"x")
    assert taken(pair, record, *(client.data(b"x") for _ in range(11_000))) is None
    read = 11_001 - pair.server.pending() // len(record)
    assert read == PIECES + IDLE * EARNED // PIECE + 1


FRAMES = {
    "the smallest": (6,),
    "a pong": (10,),
    "a report": (140,),
    "head, mask and payload": (2, 4, 6),
    "head, length, mask and payload": (2, 2, 4, 140),
    "head and payload": (6, 30),
    "a text": (2, 4, 4_096),
}


@pytest.mark.parametrize("at_once", [1, 300])
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_small_frames_may_be_sent_for_ever_in_whatever_pieces(
    tmp_path: Path, frame: tuple[int, ...], at_once: int
) -> None:
    """They leave nothing behind: as many requests for keys are forgiven as before them."""
    pair, client = following(tmp_path)
    for _ in range(1_200 // at_once):
        records = [client.data(bytes(size)) for size in frame * at_once]
        assert taken(pair, *records) == bytes(sum(frame) * at_once)
    assert taken(pair, *(client.update() for _ in range(IDLE + 1))) == b""
    assert taken(pair, client.update()) is None


def test_a_few_pieces_at_a_time_may_be_sent_for_ever(tmp_path: Path) -> None:
    pair, client = following(tmp_path)
    for _ in range(500):
        assert taken(pair, *(client.data(b"x") for _ in range(PIECES))) == b"x" * PIECES
    assert taken(pair, *(client.update() for _ in range(IDLE + 1))) == b""


def test_empty_records_are_none(tmp_path: Path) -> None:
    """OpenSSL ends that by itself, after 32 in a row."""
    pair, client = following(tmp_path)
    pair.to_server.write(b"".join(client.data(b"") for _ in range(100)))
    with pytest.raises(ssl.SSLError, match=r"RECORD_TOO_SMALL|carry nothing"):
        pair.received()


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(99)])
def test_what_is_no_tls_is_refused_at_once(tmp_path: Path, first: bytes) -> None:
    context = paired(tmp_path).server.context
    arrived = ssl.MemoryBIO()
    server = context.wrap_bio(arrived, ssl.MemoryBIO(), server_side=True)
    arrived.write(first)
    with pytest.raises(ssl.SSLError) as caught:
        server.do_handshake()
    assert not isinstance(caught.value, ssl.SSLWantReadError)


def test_a_handshake_without_end_is_ended(tmp_path: Path) -> None:
    context = paired(tmp_path).server.context
    arrived = ssl.MemoryBIO()
    server = context.wrap_bio(arrived, ssl.MemoryBIO(), server_side=True)
    arrived.write(b"\x16\x03\x01\0\x04\x01\0\x40\0" + b"\x16\x03\x01\0\x01\0" * 1_000)
    with pytest.raises(Flooded):
        server.do_handshake()


def test_a_connection_ends_in_both_directions(tmp_path: Path) -> None:
    pair, client = following(tmp_path)
    with pytest.raises(ssl.SSLWantReadError):
        pair.server.unwrap()
    pair.to_server.write(b"".join(client.update() for _ in range(1_000)))
    with pytest.raises(Flooded):
        pair.server.unwrap()
