"""Streaming HTTP bodies, in whatever pieces they come."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playhead.loadgen.http_body import BadResponse, Response

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\n\r\n"
)


def fed(*pieces: bytes) -> tuple[Response, bytes]:
    response = Response()
    return response, b"".join(response.feed(piece) for piece in pieces)


@given(st.lists(st.integers(0, len(CHUNKED)), max_size=8))
def test_chunks_are_joined_however_they_are_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(CHUNKED)]
    response, body = fed(*(CHUNKED[a:b] for a, b in pairwise(edges)))
    assert body == b"hello world"
    assert (response.status, response.over) == (200, True)
    assert response.end()


def test_part_of_a_chunk_is_given_at_once() -> None:
    response, body = fed(CHUNKED[:60])
    assert body == b"hello"[: len(body)] != b""
    assert not response.over
    assert not response.end(), "the connection broke in the middle"


def test_a_body_with_a_length_ends_there() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
    response, body = fed(head + b"ab", b"cd", b"more")
    assert (body, response.over) == (b"abcd", True)
    assert not fed(head + b"ab")[0].end()


def test_a_body_may_end_with_its_connection() -> None:
    response, body = fed(b"HTTP/1.0 200 OK\r\nA: b\r\n\r\nab", b"cd")
    assert (body, response.over, response.headers) == (b"abcd", False, {"a": "b"})
    assert response.end()
    assert response.over


def test_before_the_head_is_whole_nothing_is_known() -> None:
    response, body = fed(b"HTTP/1.1 200 OK\r\nA")
    assert (body, response.status) == (b"", 0)
    assert not response.end()


def test_other_answers_keep_their_status() -> None:
    assert fed(b"HTTP/1.1 429 Too Many Requests\r\n\r\nx")[0].status == 429


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"x" * 70_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_response_is_refused(data: bytes) -> None:
    with pytest.raises(BadResponse):
        fed(data)
