"""Keys, tickets and revocation on a running server."""

import asyncio
import http.client
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
import uvloop
from descriptors import no_descriptors
from harness import Client, Gateway, eventually, gateway
from machine import PATIENCE
from playhead.client import ConnectionFailed
from playhead.client import connect as open_voice
from playhead.engine import clock
from playhead.gateway import access_watch
from playhead.gateway.access_file import edit
from playhead.gateway.access_keys import METRICS, ApiKey, KeyRing, new_key
from playhead.gateway.access_quota import Quota
from playhead.gateway.access_tickets import LIFETIME
from playhead.gateway.messages import ErrorEvent, Failed, Ready, ResumeFrom, Text
from playhead.gateway.settings import SettingsError
from secret_ear import SERVER
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

NOW = 1_700_000_000.0


class Keys:
    """A key file with two keys."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.path = folder / "keys.json"
        self.first, self.first_key = new_key("first", NOW, **options)
        self.second, self.second_key = new_key("second", NOW, **options)
        self.write(self.first_key, self.second_key)

    def write(self, *keys: ApiKey) -> None:
        with edit(self.path) as put:
            put(KeyRing(keys))


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_watch, "CHECK", 0.02)


def bearer(key: str) -> dict[str, Any]:
    return {"additional_headers": {"Authorization": f"Bearer {key}"}}


async def request(
    running: Gateway, method: str, path: str, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    def ask() -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    return await asyncio.to_thread(ask)


async def ticket(running: Gateway, key: str) -> str:
    status, headers, body = await request(
        running, "POST", "/v1/tickets", {"Authorization": f"Bearer {key}"}
    )
    assert (status, headers["Cache-Control"]) == (200, "no-store")
    told = json.loads(body)
    assert told["expires_in"] == 60
    return str(told["ticket"])


async def refused(running: Gateway, **options: Any) -> tuple[int, dict[str, str], dict[str, Any]]:
    options = {"subprotocols": [Subprotocol("playhead.v1.json")], "uri": running.url} | options
    with pytest.raises(InvalidStatus) as caught:
        await connect(**options)
    answer = caught.value.response
    return answer.status_code, dict(answer.headers.raw_items()), json.loads(answer.body)


def test_a_key_opens_a_session(keys: Keys) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            client = await running.client(**bearer(keys.first))
            assert isinstance(await client.hello(), Ready)
            client = await running.client(additional_headers={"X-API-Key": keys.second})
            assert isinstance(await client.hello(), Ready)

    uvloop.run(main())


def test_without_one_it_is_refused_before_the_upgrade(keys: Keys) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            status, headers, body = await refused(running)
            assert (status, body["code"]) == (401, "unauthorized")
            assert headers["WWW-Authenticate"].startswith("Bearer")
            status, _, body = await refused(running, **bearer(keys.first + "x"))
            assert (status, body["code"]) == (401, "unauthorized")
            status, _, body = await refused(running, uri=f"{running.url}?api_key={keys.first}")
            assert (status, body["code"]) == (400, "misplaced_key")
            assert keys.first not in json.dumps(body)
            assert len(running.server.hub.registry) == 0

    uvloop.run(main())


def test_a_ticket_opens_one_session(keys: Keys) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            one, other = await ticket(running, keys.first), await ticket(running, keys.first)
            offered = [Subprotocol("playhead.v1.json"), Subprotocol(f"playhead.ticket.{one}")]
            async with connect(running.url, subprotocols=offered) as socket:
                assert socket.subprotocol == "playhead.v1.json"
            status, _, body = await refused(running, subprotocols=offered)
            assert (status, body["code"]) == (401, "unauthorized")
            wire = [Subprotocol("playhead.v1.json")]
            async with connect(f"{running.url}?ticket={other}", subprotocols=wire):
                pass
            assert (await refused(running, uri=f"{running.url}?ticket={other}"))[0] == 401

    uvloop.run(main())


def test_tickets_are_for_keys_and_for_known_pages(keys: Keys) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            with_key = {"Authorization": f"Bearer {keys.first}"}
            foreign = with_key | {"Origin": "https://evil.example"}
            assert (await request(running, "POST", "/v1/tickets"))[0] == 401
            assert (await request(running, "POST", "/v1/tickets", foreign))[0] == 403
            status, headers, _ = await request(running, "GET", "/v1/tickets", with_key)
            assert (status, headers["Allow"]) == (405, "POST")
        async with gateway() as running:
            assert (await request(running, "POST", "/v1/tickets"))[0] == 404

    uvloop.run(main())


def test_connections_of_a_key_are_counted(tmp_path: Path) -> None:
    keys = Keys(tmp_path, quota=Quota(2, 2, 1_000))

    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            clients = [await running.client(**bearer(keys.first)) for _ in range(2)]
            status, headers, body = await refused(running, **bearer(keys.first))
            assert (status, body["code"]) == (429, "connections_per_key")
            assert int(headers["Retry-After"]) > 0
            await running.client(**bearer(keys.second))
            await clients[0].socket.close()
            await eventually(lambda: running.server.readiness().load["connections"] == 2)
            await running.client(**bearer(keys.first))

    uvloop.run(main())


async def speaking(running: Gateway, key: str) -> Client:
    client = await running.client(**bearer(key))
    await client.hello()
    await client.send(Text("one two three "))
    await eventually(lambda: bool(running.engine.live))
    return client


def test_streams_and_characters_of_a_key_are_counted(tmp_path: Path) -> None:
    keys = Keys(tmp_path, quota=Quota(5, 1, 60))

    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            first = await speaking(running, keys.first)
            second = await running.client(**bearer(keys.first))
            await second.hello()
            await second.send(Text("me too "))
            error = await second.until(ErrorEvent)
            assert (error.code, error.retry_after) == ("overloaded", 1_000.0)
            assert "streams" in error.message
            await speaking(running, keys.second)
            await first.send(Text("x" * 60), Text("y"))
            error = await first.until(ErrorEvent)
            assert error.code == "rate_limited"
            assert error.retry_after is not None
            assert error.retry_after > 10_000

    uvloop.run(main())


def test_a_revoked_key_ends_its_sessions(keys: Keys) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            revoked = await speaking(running, keys.first)
            silent = await running.client(**bearer(keys.first))
            left = await speaking(running, keys.first)
            left.reset()
            other = await speaking(running, keys.second)
            await eventually(lambda: len(running.server.hub.registry) == 4)
            keys.write(keys.second_key)
            assert (await revoked.until(Failed)).code == "revoked"
            assert await revoked.closed() == 1008
            assert await silent.closed() == 1008
            await eventually(lambda: len(running.server.hub.registry) == 1)
            await eventually(lambda: len(running.engine.live) == 1)
            assert (await refused(running, **bearer(keys.first)))[0] == 401
            await other.send(Text("still here"))
            assert running.server.access.valid(keys.second_key.id)

    uvloop.run(main())


def test_an_expired_key_ends_its_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(tmp_path, expires=NOW + 10)
    monkeypatch.setattr("playhead.engine.clock.wall", lambda: NOW)

    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            client = await speaking(running, keys.first)
            monkeypatch.setattr(running.server.access, "_wall", lambda: NOW + 10)
            assert await client.closed() == 1008

    uvloop.run(main())


@pytest.mark.parametrize("content", [None, b"{", b'{"version": 1}'])
def test_a_broken_key_file_changes_nothing(
    keys: Keys, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            client = await speaking(running, keys.first)
            if content is None:
                keys.path.unlink()
            else:
                keys.path.write_bytes(content)
            await eventually(lambda: "the keys read before stay in use" in caplog.text)
            assert isinstance(await (await running.client(**bearer(keys.second))).hello(), Ready)
            keys.write(keys.second_key)
            assert await client.closed() == 1008

    with caplog.at_level(logging.ERROR):
        uvloop.run(main())


def test_a_revocation_during_want_of_descriptors_is_not_lost(
    keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            client = await speaking(running, keys.first)
            keys.write(keys.second_key)
            with no_descriptors():
                await eventually(lambda: "Too many open files" in caplog.text)
                assert running.server.access.valid(keys.first_key.id)
            assert await client.closed() == 1008
            assert (await refused(running, **bearer(keys.first)))[0] == 401

    with caplog.at_level(logging.ERROR):
        uvloop.run(main())


def test_a_ticket_does_not_outlive_its_minute_in_a_machine_that_sleeps(
    keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            text = await ticket(running, keys.first)
            real = time.clock_gettime_ns
            slept = round(LIFETIME * 1e9)
            monkeypatch.setattr(time, "clock_gettime_ns", lambda one: real(one) + slept)
            status, _, _ = await refused(running, uri=f"{running.url}?ticket={text}")
            assert status == 401

    uvloop.run(main())


def test_expiry_goes_by_the_wall_clock_and_tickets_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock set back by hours cuts nobody off; set forward, it ends what has expired by it, and
    set right again, it lets that key in anew. Tickets keep their minute."""
    keys = Keys(tmp_path, expires=NOW + 3_600)
    wall = [NOW]

    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            monkeypatch.setattr(running.server.access, "_wall", lambda: wall[0])
            client = await speaking(running, keys.first)
            bought = await ticket(running, keys.first)
            wall[0] = NOW - 5 * 3_600
            await asyncio.sleep(0.1)
            await client.send(Text("still here"))
            offered = [Subprotocol("playhead.v1.json"), Subprotocol(f"playhead.ticket.{bought}")]
            async with connect(running.url, subprotocols=offered):
                pass
            wall[0] = NOW + 5 * 3_600
            assert await client.closed() == 1008
            assert (await refused(running, **bearer(keys.first)))[0] == 401
            wall[0] = NOW
            assert len(running.server.hub.registry) == 0
            await speaking(running, keys.first)

    uvloop.run(main())


def test_a_session_of_another_tenant_does_not_exist(keys: Keys) -> None:
    """The same answer, in every field, as for a session that never was: living or ended."""

    async def attempt(running: Gateway, key: str, session: str, token: str) -> ErrorEvent:
        client = await running.client(**bearer(key))
        await client.hello(resume=ResumeFrom(session, token, 0))
        error = client.received[-1]
        assert isinstance(error, ErrorEvent)
        assert await client.closed() == 4001
        return error

    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            owner = await speaking(running, keys.first)
            living = owner.ready
            unknown = await attempt(running, keys.second, "A" * 22, "B" * 22)
            assert await attempt(running, keys.second, living.session, living.token) == unknown
            assert running.server.hub.find(living.session, keys.first_key.id) is not None
            host = running.server.hub.find(living.session, keys.first_key.id)
            assert host is not None
            host.stop(1000, "over", clock.monotonic())
            assert await attempt(running, keys.second, living.session, living.token) == unknown
            told = await attempt(running, keys.first, living.session, living.token)
            assert told.unheard_text  # its owner hears more

    uvloop.run(main())


def test_a_connection_that_is_gone_is_not_counted(keys: Keys) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            client = await running.client(**bearer(keys.first))
            (peer,) = running.server.peers
            grant = peer.grant
            assert grant is not None
            assert grant.account is not None
            await client.socket.close()
            await eventually(lambda: grant.account.connections == 0)
            peer.admit(grant)  # its turn comes only now
            assert grant.account.connections == 0

    uvloop.run(main())


def test_no_secret_is_logged_or_shown(keys: Keys, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> bytes:
        async with gateway(keys=str(keys.path)) as running:
            used = await ticket(running, keys.first)
            url = f"{running.url}?ticket={used}"
            async with connect(url, subprotocols=[Subprotocol("playhead.v1.json")]):
                pass
            await refused(running, uri=url)
            await refused(running, uri=f"{running.url}?key={keys.first}")
            await refused(running, **bearer(keys.second[:-1]))
            await (await running.client(**bearer(keys.second))).hello()
            secrets.extend([used, keys.first, keys.second[:-1]])
            return (await request(running, "GET", "/metrics"))[2]

    secrets: list[str] = []
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, logger=SERVER):
        metrics = uvloop.run(main()).decode()
    shown = caplog.text + metrics
    assert len(secrets) == 3
    # The end of each: a random part may hold any of the characters that divide it.
    assert [secret for secret in secrets if secret[-20:] in shown] == []


def test_a_key_file_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    async def main() -> None:
        async with gateway(keys=str(tmp_path / "none.json")):
            raise AssertionError("it started")

    with pytest.raises(SettingsError, match=r"--keys: .*none\.json: No such file"):
        uvloop.run(main())


def test_a_key_file_for_all_to_write_is_told(keys: Keys, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)):
            pass

    keys.path.chmod(0o666)
    uvloop.run(main())
    assert "can be written by everybody" in caplog.text


def test_the_client_shows_its_key(keys: Keys) -> None:
    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            async with open_voice(running.url, key=keys.first) as voice:
                assert len(await voice.speak("one two").read()) == 2 * 1920
            with pytest.raises(ConnectionFailed, match=r"answered 401 .*: no API key was sent"):
                async with open_voice(running.url):
                    raise AssertionError("it was let in")

    uvloop.run(main())


def test_metrics_are_for_this_machine_and_for_their_own_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = Keys(tmp_path)
    scraper, scraper_key = new_key("scraper", NOW, roles=(METRICS,))
    keys.write(keys.first_key, scraper_key)

    async def main() -> None:
        async with gateway(keys=str(keys.path)) as running:
            assert (await request(running, "GET", "/metrics"))[0] == 200
            monkeypatch.setattr("playhead.gateway.peer.address_key", lambda address: "192.0.2.1")
            assert (await request(running, "GET", "/metrics"))[0] == 401
            shown = {"Authorization": f"Bearer {keys.first}"}
            assert (await request(running, "GET", "/metrics", shown))[0] == 403
            shown = {"Authorization": f"Bearer {scraper}"}
            assert (await request(running, "GET", "/metrics", shown))[0] == 200
            assert (await refused(running, **bearer(scraper)))[0] == 403

    uvloop.run(main())
