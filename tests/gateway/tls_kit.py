"""A client's side of TLS 1.3 that also sends what no library lets it: key updates without end."""

import hashlib
import hmac
import ssl
import struct
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SECRET = "CLIENT_TRAFFIC_SECRET_0"
KEY_UPDATE = b"\x18\x00\x00\x01\x01"
"""Handshake type, length, and the wish that the peer changes its keys too (RFC 8446, 4.6.3)."""
UPDATE_SIZE = 5 + len(KEY_UPDATE) + 1 + 16


def expand(secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label (RFC 8446, 7.1) with SHA-384; at most its 48 bytes."""
    name = b"tls13 " + label
    info = struct.pack("!HB", size, len(name)) + name + b"\0"
    return hmac.digest(secret, info + b"\1", hashlib.sha384)[:size]


def client_secret(keylog: Path) -> bytes:
    """The secret of a client's first keys, from the file that ``keylog_filename`` names."""
    lines = keylog.read_text(encoding="ascii").splitlines()
    return bytes.fromhex(next(line.split()[2] for line in lines if line.startswith(SECRET)))


class Records:
    """What a client sends under its ``secret`` and those that follow from it, with the suite
    TLS_AES_256_GCM_SHA384."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._sent = 0  # under this secret

    def update(self) -> bytes:
        """A wish for new keys, which the client takes itself."""
        wish = self._sealed(KEY_UPDATE, 0x16)
        self._secret, self._sent = expand(self._secret, b"traffic upd", 48), 0
        return wish

    def data(self, content: bytes) -> bytes:
        """Data of the application's, which may be empty."""
        return self._sealed(content, 0x17)

    def _sealed(self, content: bytes, kind: int) -> bytes:
        key, iv = expand(self._secret, b"key", 32), expand(self._secret, b"iv", 12)
        nonce = int.from_bytes(iv, "big") ^ self._sent  # RFC 8446, 5.3
        self._sent += 1
        head = struct.pack("!BHH", 0x17, 0x0303, len(content) + 1 + 16)
        inner = content + bytes([kind])
        return head + AESGCM(key).encrypt(nonce.to_bytes(12, "big"), inner, head)


class Pair:
    """Two ends of a connection without a socket."""

    def __init__(self, server: ssl.SSLContext, client: ssl.SSLContext) -> None:
        self.to_server, self._from_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._to_client, self._from_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(self.to_server, self._from_server, server_side=True)
        self.client = client.wrap_bio(
            self._to_client, self._from_client, server_hostname="127.0.0.1"
        )
        waiting = [self.client, self.server]
        while waiting:
            waiting = [end for end in waiting if not self._shaken(end)]

    def _shaken(self, end: ssl.SSLObject) -> bool:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self.to_server.write(self._from_client.read())
            self._to_client.write(self._from_server.read())
        return True

    def sent(self, *messages: bytes) -> bytes:
        """What the client's messages are on the wire."""
        for message in messages:
            self.client.write(message)
        return self._from_client.read()

    def received(self) -> bytes:
        """All that the server can read."""
        found = b""
        while self.to_server.pending or self.server.pending():
            try:
                found += self.server.read(65_536)
            except ssl.SSLWantReadError:
                break
        return found
