#!/usr/bin/env python3
"""What TLS records that carry nothing cost a server, and what it costs to count them.

256 KiB of KeyUpdates, as an event loop reads them at once, as much of records of a byte, 16 KiB of
records of six bytes, which are what comes at once at most, and messages of 200 bytes, by the
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
AT_ONCE = 16 * 1024
"""Bytes that the server deciphers at once."""
OVERHEAD = 5 + 1 + 16
"""Bytes of a record that are not its content's (RFC 8446, 5.2), with a tag of 16."""
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


def reading(pair: Pair) -> float:
    """Seconds until the server is done with what has been sent, or with the connection."""
    began = time.thread_time()
    try:
        pair.received()
    except Flooded:
        assert pair.server.pending()
    return time.thread_time() - began


def flood(server: ssl.SSLContext, client: ssl.SSLContext, keylog: Path) -> float:
    """Seconds until 256 KiB of KeyUpdates are done with, or their connection is."""
    keylog.unlink(missing_ok=True)
    client.keylog_filename = str(keylog)
    pair = Pair(server, client)
    records = Records(client_secret(keylog))
    pair.to_server.write(b"".join(records.update() for _ in range(READ // UPDATE_SIZE)))
    return reading(pair)


def small(server: ssl.SSLContext, client: ssl.SSLContext, size: int, wire: int) -> float:
    """Seconds until ``wire`` bytes of records that carry ``size`` each are read, or their
    connection is ended."""
    pair = Pair(server, client)
    records = [pair.sent(bytes(size)) for _ in range(wire // (OVERHEAD + size))]
    pair.to_server.write(b"".join(records))
    return reading(pair)


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
        kinds = {
            "updates": lambda server: flood(server, client, folder / "keys.log"),
            "of_1_byte": lambda server: small(server, client, 1, READ),
            "of_6_bytes": lambda server: small(server, client, 6, AT_ONCE),
            "message": lambda server: message(server, client),
        }
        took: dict[str, dict[str, list[float]]] = {
            kind: {each: [] for each in servers} for kind in kinds
        }
        for _ in range(tries):
            for kind, measured in kinds.items():
                for each, server in servers.items():
                    took[kind][each].append(measured(server))
    medians = {
        kind: {each: statistics.median(times) for each, times in found.items()}
        for kind, found in took.items()
    }
    return {
        "openssl": ssl.OPENSSL_VERSION,
        "updates": READ // UPDATE_SIZE,
        "of_1_byte": READ // (OVERHEAD + 1),
        "of_6_bytes": AT_ONCE // (OVERHEAD + 6),
        **{
            f"{kind}_ms": {each: round(1e3 * value, 2) for each, value in found.items()}
            for kind, found in medians.items()
            if kind != "message"
        },
        "message_us": {each: round(1e6 * t, 2) for each, t in medians["message"].items()},
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
