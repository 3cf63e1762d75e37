"""Whatever names clients make up, a scrape shows as many series as before and no such name."""

import asyncio
import contextlib
import random
import re
import string
from urllib.parse import quote

from kit import Bare, client
from live import live_server
from playhead.gateway import messages as m
from websockets.exceptions import ConnectionClosed

NAMES = 20
SERIES = re.compile(r"^(\w+(?:\{[^}]*\})?) ", re.MULTILINE)


def made_up(seed: int) -> str:
    rng = random.Random(seed)
    return "zq" + "".join(rng.choices(string.ascii_letters + "/.%äß{}", k=rng.randint(1, 40)))


async def http(address: str, path: str, *headers: str) -> str:
    host, port = address.removeprefix("ws://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    answer = await reader.read()
    writer.close()
    return answer.decode()


async def ask_for(address: str, name: str) -> None:
    """A voice, a codec, a session, a key and a page of that name."""
    for hello in ({"voice": name}, {"codec": name}, {"language": name}):
        async with client(address + "/v1/session", greeted=False, **hello) as bare:
            await answered(bare)
    async with client(
        address + "/v1/session", greeted=False, resume=m.ResumeFrom(name, name, 3)
    ) as bare:
        await answered(bare)
    await http(address, "/" + quote(name, safe="/"), f"Authorization: Bearer {quote(name)}")


async def answered(bare: Bare) -> None:
    with contextlib.suppress(ConnectionClosed):
        await bare.until(m.Ready, m.ErrorEvent)


def test_ten_thousand_names_would_show_no_series_more() -> None:
    async def main() -> None:
        async with live_server() as address:
            await ask_for(address, made_up(0))
            before = set(SERIES.findall(await http(address, "/metrics")))
            for number in range(1, NAMES):
                await ask_for(address, made_up(number))
            shown = await http(address, "/metrics")
            assert set(SERIES.findall(shown)) == before
            assert len(before) > 50
            assert "zq" not in shown

    asyncio.run(main())
