"""The certificate, and its successor."""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop
from descriptors import no_descriptors
from harness import Gateway, eventually, gateway
from machine import AT_ONCE, PATIENCE
from OpenSSL import SSL
from playhead.gateway import last_call
from playhead.gateway.access_tls import Tls, TlsError
from playhead.gateway.access_tls_records import Context, Metered
from playhead.gateway.settings import SettingsError
from tls_kit import UPDATE_SIZE, Records, client_secret

CA = trustme.CA()
ALLOW_CLIENT_RENEGOTIATION = 1 << 8
"""``SSL_OP_ALLOW_CLIENT_RENEGOTIATION`` of OpenSSL 3, which Python has no name for."""


def issue(folder: Path, name: str = "127.0.0.1") -> dict[str, str]:
    """Write a fresh pair; the settings that name it."""
    issued = CA.issue_cert(name)
    issued.private_key_pem.write_to_path(str(folder / "key.pem"))
    (folder / "cert.pem").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    return {"tls_cert": str(folder / "cert.pem"), "tls_key": str(folder / "key.pem")}


def client_context(**options: Any) -> ssl.SSLContext:
    context = ssl.create_default_context()
    CA.configure_trust(context)
    for name, value in options.items():
        setattr(context, name, value)
    return context


def served(port: int, context: ssl.SSLContext | None = None) -> tuple[bytes, str]:
    """The certificate shown and the TLS version agreed."""
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE) as raw,
        (context or client_context()).wrap_socket(raw, server_hostname="127.0.0.1") as wrapped,
    ):
        return wrapped.getpeercert(True) or b"", wrapped.version() or ""


async def shown(running: Gateway, context: ssl.SSLContext | None = None) -> tuple[bytes, str]:
    return await asyncio.to_thread(served, running.port, context)


@pytest.mark.slow
def test_a_session_over_tls(tmp_path: Path) -> None:
    async def main() -> None:
        async with gateway(**issue(tmp_path)) as running:
            client = await running.client(
                ssl=client_context(), uri=f"wss://127.0.0.1:{running.port}/v1/session"
            )
            await client.hello()
            await client.say("one two three")
            await client.ending()
            assert len(client.audio()) == 3 * 1920 * 2

    uvloop.run(main())


@pytest.mark.slow
def test_old_versions_are_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with gateway(**issue(tmp_path)) as running:
            for version, good in (("TLSv1_1", False), ("TLSv1_2", True), ("TLSv1_3", True)):
                wanted = ssl.TLSVersion[version]
                context = client_context(minimum_version=ssl.TLSVersion.MINIMUM_SUPPORTED)
                context.maximum_version = wanted
                if good:
                    assert (await shown(running, context))[1] == version.replace("_", ".")
                    continue
                context.set_ciphers("ALL:@SECLEVEL=0")
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    await shown(running, context)

    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        uvloop.run(main())


def renegotiates(port: int) -> bool:
    """Whether a client of TLS 1.2 is given a second handshake in its connection, and is served
    after it."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_max_proto_version(SSL.TLS1_2_VERSION)
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as raw:
        raw.setblocking(True)
        client = SSL.Connection(context, raw)
        client.set_connect_state()
        client.do_handshake()
        assert client.renegotiate()
        try:
            client.do_handshake()
        except SSL.Error as refused:
            if "no renegotiation" not in str(refused):
                raise
            return False
        client.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        return True


@pytest.mark.slow
def test_renegotiation_is_refused(tmp_path: Path) -> None:
    """Also where the machine's OpenSSL would allow it (``Options = ClientRenegotiation``); that it
    would be noticed shows a server without our own prohibition."""

    async def main() -> None:
        async with gateway(**issue(tmp_path)) as running:
            context = running.server.guard.options(1.0)["ssl"]
            assert not await asyncio.to_thread(renegotiates, running.port)
            context.options |= ALLOW_CLIENT_RENEGOTIATION
            assert not await asyncio.to_thread(renegotiates, running.port)
            context.options &= ~ssl.OP_NO_RENEGOTIATION
            assert await asyncio.to_thread(renegotiates, running.port)

    uvloop.run(main())


class Raw:
    """A client on a blocking socket, whose records are made in memory."""

    def __init__(self, raw: socket.socket, **options: Any) -> None:
        self.raw = raw
        arrived, self.leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = client_context(check_hostname=False, **options)
        self.tls = context.wrap_bio(arrived, self.leaving)
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(self.leaving.read())
                arrived.write(raw.recv(65_536))
        raw.sendall(self.leaving.read())

    def records(self, data: bytes, size: int) -> bytes:
        """``data`` in records of ``size`` bytes."""
        for at in range(0, len(data), size):
            self.tls.write(data[at : at + size])
        return self.leaving.read()

    def send(self, wire: bytes) -> None:
        """And shut up; the server may end the connection before."""
        with contextlib.suppress(ConnectionError):
            self.raw.sendall(wire)
            self.raw.shutdown(socket.SHUT_WR)

    def rest(self) -> bytes:
        """All that the server sends until it ends the connection."""
        answer = b""
        with contextlib.suppress(ConnectionError):
            while part := self.raw.recv(65_536):
                answer += part
        return answer


def flood(port: int, keylog: Path) -> bytes:
    """Connect, ask for new keys without end, and read until the server ends that."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as raw:
        client = Raw(raw, keylog_filename=str(keylog))
        records = Records(client_secret(keylog))
        with contextlib.suppress(ConnectionError):
            raw.sendall(b"".join(records.update() for _ in range(1_000)))
        return client.rest()


@pytest.mark.slow
@pytest.mark.parametrize("loop", [uvloop.run, asyncio.run])
def test_key_updates_without_end_end_their_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, loop: Callable[[Any], None]
) -> None:
    """Not a limit of time: that would be a minute."""

    async def main() -> None:
        async with gateway(open_timeout=PATIENCE, **issue(tmp_path)) as running:
            async with asyncio.timeout(AT_ONCE):
                answer = await asyncio.to_thread(flood, running.port, tmp_path / "keys.log")
            assert len(answer) < 300 * UPDATE_SIZE, "and does not answer all"
            await eventually(lambda: running.server.caps.total == 0)
            assert (await shown(running))[1] == "TLSv1.3"

    with caplog.at_level(logging.WARNING):
        loop(main())
    assert "Traceback" not in caplog.text


UPGRADE = b"".join(
    line + b"\r\n"
    for line in (
        *(b"GET /v1/session HTTP/1.1", b"Host: localhost", b"Upgrade: websocket"),
        *(b"Connection: Upgrade", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
        *(b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Protocol: playhead.v1.json", b""),
    )
)
LONG = b"\x81\xfe\xff\xdc\0\0\0\0" + b"x" * 65_500
"""A message that is no JSON, masked with zeros."""


PATIENT = {"open_timeout": PATIENCE, "hello_timeout": PATIENCE}


def pieces(port: int, size: int) -> bytes:
    """Send a long message in records of ``size`` bytes: what the server sent by then."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as raw:
        client = Raw(raw)
        client.send(client.records(UPGRADE, len(UPGRADE)) + client.records(LONG, size))
        return client.rest()


class Reads(Metered):
    """Writes down how much there is to be deciphered when that begins."""

    seen: list[int]

    def _feed(self) -> None:
        if self._arrived.pending:
            self.seen.append(self._arrived.pending)
        super()._feed()


@pytest.mark.slow
@pytest.mark.parametrize("loop", [uvloop.run, asyncio.run])
def test_records_of_a_few_bytes_are_deciphered_a_few_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loop: Callable[[Any], None]
) -> None:
    """While a connection that has sent much reads no more, event loops would have 256 KiB wait for
    it, by their defaults: 9,000 records."""
    monkeypatch.setattr(Context, "sslobject_class", Reads)
    monkeypatch.setattr(Reads, "seen", [], raising=False)

    async def main() -> None:
        async with gateway(**PATIENT, **issue(tmp_path)) as running:
            await asyncio.to_thread(pieces, running.port, 6)
            await eventually(lambda: running.server.caps.total == 0)

    loop(main())
    assert sum(Reads.seen) > 280_000, "all of them"
    assert max(Reads.seen) < 96 * 1024


@pytest.mark.slow
def test_records_of_a_byte_end_their_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "sslobject_class", Reads)
    monkeypatch.setattr(Reads, "seen", [], raising=False)

    async def main() -> None:
        async with gateway(**PATIENT, **issue(tmp_path)) as running:
            await asyncio.to_thread(pieces, running.port, 1)
            await eventually(lambda: running.server.caps.total == 0)
            assert sum(Reads.seen) < 256 * 1024, "of one and a half million"
            assert (await shown(running))[1] == "TLSv1.3"

    with caplog.at_level(logging.WARNING):
        uvloop.run(main())
    assert "Traceback" not in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"", b"\x16\x03\x01"])
def test_who_does_not_speak_tls_is_cut_in_time(tmp_path: Path, first: bytes) -> None:
    async def main() -> None:
        async with gateway(open_timeout=0.2, **issue(tmp_path)) as running:
            reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
            writer.write(first)
            async with asyncio.timeout(PATIENCE):
                rest = await reader.read()
            assert b"HTTP" not in rest
            writer.close()

    uvloop.run(main())


@pytest.mark.slow
def test_a_handshake_that_failed_holds_up_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_call, "HEARD", PATIENCE)

    async def main() -> None:
        async with (
            asyncio.timeout(AT_ONCE),
            gateway(open_timeout=PATIENCE, **issue(tmp_path)) as up,
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", up.port)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"HTTP" not in await reader.read()
            writer.close()
            await up.server.drain()

    uvloop.run(main())


@pytest.mark.slow
def test_a_renewed_certificate_is_taken_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        files = issue(tmp_path)
        tls = Tls(Path(files["tls_cert"]), Path(files["tls_key"]))
        assert tls.refresh() is False
        server = await asyncio.start_server(
            lambda reader, writer: writer.close(),
            "127.0.0.1",
            0,
            **{"ssl": tls.options(5.0)["ssl"]},
        )
        async with server:
            port = server.sockets[0].getsockname()[1]
            before = (await asyncio.to_thread(served, port))[0]
            issue(tmp_path)
            assert tls.refresh() is True
            renewed = (await asyncio.to_thread(served, port))[0]
            assert renewed != before
            (tmp_path / "key.pem").write_text("half a fi")
            assert tls.refresh() is False
            assert (await asyncio.to_thread(served, port))[0] == renewed
            issue(tmp_path)
            with no_descriptors():
                assert tls.refresh() is False
            assert (await asyncio.to_thread(served, port))[0] == renewed
            assert tls.refresh() is True
            assert (await asyncio.to_thread(served, port))[0] != renewed

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert "the old certificate stays in use" in caplog.text
    assert "Too many open files" in caplog.text


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    files = issue(tmp_path)
    cert, key = Path(files["tls_cert"]), Path(files["tls_key"])
    with pytest.raises(TlsError, match=r"missing\.pem: No such file"):
        Tls(cert, tmp_path / "missing.pem")
    (tmp_path / "other").mkdir()
    other = issue(tmp_path / "other")
    with pytest.raises(TlsError, match="are no pair in PEM"):
        Tls(cert, Path(other["tls_key"]))
    with pytest.raises(TlsError, match="are no pair in PEM"):
        Tls(key, cert)
    locked = CA.issue_cert("127.0.0.1").private_key_pem.bytes()
    key.write_bytes(locked.replace(b"BEGIN", b"BEGIN ENCRYPTED").replace(b"END", b"END ENCRYPTED"))
    with pytest.raises(TlsError, match="no pair in PEM"):
        Tls(cert, key)


def test_a_server_with_a_bad_certificate_does_not_start(tmp_path: Path) -> None:
    async def main() -> None:
        files = issue(tmp_path)
        (tmp_path / "cert.pem").unlink()
        async with gateway(**files):
            raise AssertionError("it started")

    with pytest.raises(SettingsError, match=r"--tls-cert, --tls-key: .*cert\.pem: No such file"):
        uvloop.run(main())
