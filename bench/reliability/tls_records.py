#!/usr/bin/env python3
"""What TLS records that carry nothing cost a server, and what it costs to count them.

256 KiB of KeyUpdates, as an event loop reads them at once, and messages of 200 bytes, by the
context that the server uses and by one that counts nothing (``OpenSSL alone``). Both ends are in
this process, without sockets; counted is the processor time of the thread, which other work on the
machine does not change much.
"""

import argparse
import ssl
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "gateway")]

import figures  # noqa: E402
import trustme  # noqa: E402
from playhead.gateway.access_tls import Tls  # noqa: E402
from playhead.gateway.access_tls_records import Flooded  # noqa: E402
from tls_kit import UPDATE_SIZE, Pair, Records, client_secret  # noqa: E402

READ = 256 * 1024
"""Bytes that the event loop reads at once."""
MESSAGES = 5_000
SIZE = 200


def contexts(folder: Path) -> tuple[dict[str, ssl.SSLContext], ssl.SSLContext]:
    """Two servers' contexts by name, and their client's."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    cert, key = folder / "cert.pem", folder / "key.pem"
    issued.private_key_pem.write_to_path(str(key))
    cert.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    client = ssl.create_default_context()
    authority.configure_trust(client)
    client.keylog_filename = str(folder / "keys.log")
    alone = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    alone.load_cert_chain(cert, key)
    return {"counted": Tls(cert, key).options(5.0)["ssl"], "OpenSSL alone": alone}, client


def flood(server: ssl.SSLContext, client: ssl.SSLContext, keylog: Path) -> float:
    """Seconds until 256 KiB of KeyUpdates are done with, or their connection is."""
    keylog.unlink(missing_ok=True)
    client.keylog_filename = str(keylog)
    pair = Pair(server, client)
    records = Records(client_secret(keylog))
    pair.to_server.write(b"".join(records.update() for _ in range(READ // UPDATE_SIZE)))
    began = time.thread_time()
    try:
        pair.received()
    except Flooded:
        assert pair.server.pending()
    return time.thread_time() - began


def message(server: ssl.SSLContext, client: ssl.SSLContext) -> float:
    """Seconds to read one message."""
    pair = Pair(server, client)
    wires = [pair.sent(bytes(SIZE)) for _ in range(MESSAGES)]
    began = time.thread_time()
    for wire in wires:
        pair.to_server.write(wire)
        pair.server.read(READ)
    return (time.thread_time() - began) / MESSAGES


def measure(tries: int) -> dict[str, Any]:
    """Medians of ``tries``, which take turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        servers, client = contexts(folder)
        floods: dict[str, list[float]] = {each: [] for each in servers}
        messages: dict[str, list[float]] = {each: [] for each in servers}
        for _ in range(tries):
            for each, server in servers.items():
                floods[each].append(flood(server, client, folder / "keys.log"))
                messages[each].append(message(server, client))
    return {
        "openssl": ssl.OPENSSL_VERSION,
        "updates": READ // UPDATE_SIZE,
        "updates_ms": {each: round(1e3 * statistics.median(t), 2) for each, t in floods.items()},
        "message_us": {each: round(1e6 * statistics.median(t), 2) for each, t in messages.items()},
    }


def main() -> None:
    """Measure and save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=9)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    figures.save(arguments.out, measure(arguments.tries))


if __name__ == "__main__":
    main()
