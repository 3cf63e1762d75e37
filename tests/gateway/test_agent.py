"""What a balancer is told, and where it learns whose session is whose."""

import asyncio
import socket
from dataclasses import replace

import pytest
import uvloop
from harness import eventually, facts, gateway
from machine import PATIENCE
from playhead.gateway.agent import Agent, line
from playhead.gateway.http import Readiness
from playhead.gateway.messages import Ready, ResumeFrom
from playhead.gateway.session_types import digest, token_fits


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (Readiness(True, "ready", {"slack": 0.374}), b"ready up 37%\n"),
        (Readiness(False, "full", {"slack": 0.0}), b"ready up 1%\n"),
        (Readiness(True, "ready", {}), b"ready up 100%\n"),
        (Readiness(False, "draining", {"slack": 0.9}), b"drain\n"),
        (Readiness(False, "engine_dead", {"slack": 0.9}, alive=False), b"down\n"),
    ],
)
def test_the_words_of_an_agent_check(state: Readiness, says: bytes) -> None:
    assert line(state) == says


async def ask(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    return said


def test_the_agent_says_how_the_server_is() -> None:
    async def main() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        async with gateway() as running:
            agent = Agent(running.server.readiness)
            await agent.stop()
            await agent.start(listener)
            port = listener.getsockname()[1]
            # The fake engine has promised a quarter; a loop that was kept waiting says less yet.
            async with asyncio.timeout(PATIENCE):
                while await ask(port) != b"ready up 75%\n":
                    await asyncio.sleep(0.05)
            sample = running.server.metrics.registry.get_sample_value
            await eventually(lambda: sample("playhead_slack_ratio") == 0.75)
            running.server.draining = True
            assert await ask(port) == b"drain\n"
            await agent.stop()

    uvloop.run(main())


def test_tokens_and_handshakes_name_the_node() -> None:
    async def main() -> None:
        async with gateway(node="n-2") as running:
            client = await running.greeted()
            response = client.socket.response
            assert response is not None
            assert response.headers["Playhead-Node"] == "n-2"
            assert client.ready.token.startswith("n-2.")
            client.reset()
            again = await running.client()
            origin = ResumeFrom(client.ready.session, client.ready.token, 0)
            ready = await again.hello(resume=origin)
            assert isinstance(ready, Ready)
            assert ready.resumed
        async with gateway() as running:
            client = await running.greeted()
            assert "." not in client.ready.token
            response = client.socket.response
            assert response is not None
            assert "Playhead-Node" not in response.headers

    uvloop.run(main())


def test_the_name_is_no_part_of_the_secret() -> None:
    assert facts().token("secret") == "secret"
    token = replace(facts(), node="n-2").token("secret")
    assert token_fits(token, digest("secret"))
    assert token_fits("secret", digest("secret"))
    assert not token_fits("n-2.other", digest("secret"))
