"""Reading /metrics of servers that have it, and of those that do not."""

import asyncio

import pytest
from playhead.loadgen.record import MetricsSample
from playhead.loadgen.scrape import fetch, watch


def answered(answer: bytes) -> str:
    async def talk() -> str:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            request = await reader.readuntil(b"\r\n\r\n")
            assert request.startswith(b"GET /metrics HTTP/1.1\r\n")
            assert b"\r\nX-Key: k\r\n" in request
            writer.write(answer)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await fetch(f"ws://127.0.0.1:{port}/v1/session", {"X-Key": "k"})

    return asyncio.run(talk())


def test_the_body_is_given() -> None:
    assert answered(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nplayhead_x 1.0\n") == "playhead_x 1.0\n"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 404 Not Found\r\n\r\n<html>", b"nonsense", b""])
def test_without_metrics_there_is_nothing(answer: bytes) -> None:
    assert answered(answer) == ""


def test_nobody_there_is_nothing() -> None:
    assert asyncio.run(fetch("ws://127.0.0.1:9/", {})) == ""


def test_a_server_without_metrics_is_asked_once() -> None:
    kept: list[MetricsSample] = []
    asyncio.run(watch("ws://127.0.0.1:9/", {}, kept.append, lambda: 1.0))
    assert kept == []
