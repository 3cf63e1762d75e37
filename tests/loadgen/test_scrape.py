"""Reading /metrics of servers that have it, and of those that do not."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

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


def test_what_a_server_leaves_to_its_mates_is_asked_of_them() -> None:
    texts = {
        1: "playhead_sessions 3\n",
        2: "playhead_sessions 5\nplayhead_engine_utterances 7\n",
        3: "playhead_engine_utterances 9\n",
    }

    async def talk() -> list[MetricsSample]:
        kept: list[MetricsSample] = []
        async with contextlib.AsyncExitStack() as stack:
            ports = []
            for text in texts.values():
                listener = await asyncio.start_server(telling(text), "127.0.0.1", 0)
                ports.append(
                    (await stack.enter_async_context(listener)).sockets[0].getsockname()[1]
                )
            urls = [f"ws://127.0.0.1:{port}/" for port in ports]
            watching = asyncio.create_task(watch(urls, {}, kept.append, lambda: 1.0))
            while not kept:
                await asyncio.sleep(0.01)
            watching.cancel()
        return kept

    (sample,) = asyncio.run(talk())
    assert sample.values == {"playhead_sessions": 3.0, "playhead_engine_utterances": 7.0}


def telling(text: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\n\r\n{text}".encode())
        writer.close()

    return serve


def test_a_server_without_metrics_is_asked_once() -> None:
    kept: list[MetricsSample] = []
    asyncio.run(watch(["ws://127.0.0.1:9/"], {}, kept.append, lambda: 1.0))
    assert kept == []
