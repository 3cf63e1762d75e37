"""The server's certificate: TLS 1.2 or newer, and a renewed file is taken up while running."""

import logging
import ssl
from pathlib import Path
from typing import Any, Final

from playhead.gateway.access_file import PASSING, Watched
from playhead.gateway.access_tls_records import Context

log: Final = logging.getLogger("playhead.gateway.access")


class TlsError(ValueError):
    """A certificate or key that cannot be used; the message names the file."""


class Tls:
    """One certificate chain and its key. Raises :class:`TlsError` when they do not work, and
    ``OSError`` when the machine has nothing left to read them with."""

    def __init__(self, cert: Path, key: Path) -> None:
        self._cert = cert
        self._key = key
        self._watched = Watched(cert, key)
        self._context = _context(cert, key)

    def options(self, handshake_timeout: float) -> dict[str, Any]:
        """Keyword arguments of ``loop.create_server``."""
        return {"ssl": self._context, "ssl_handshake_timeout": handshake_timeout}

    def refresh(self) -> bool:
        """Take up changed files; whether they were. Bad ones are logged and the old ones stay.

        New connections get the new certificate, open ones keep theirs. What could not be read for
        want of descriptors is read again at the next look.
        """
        if not self._watched.changed():
            return False
        try:
            # A pair that is half replaced must not reach the context that serves.
            _context(self._cert, self._key)
            self._context.load_cert_chain(self._cert, self._key)
        except (TlsError, OSError) as fault:
            # A fault of TLS is an OSError too, with a number of its own.
            if not isinstance(fault, TlsError | ssl.SSLError) and fault.errno in PASSING:
                self._watched.forget()
            log.error("the old certificate stays in use: %s", fault)  # noqa: TRY400 - no traceback
            return False
        log.info("new certificate from %s", self._cert)
        return True


def _context(cert: Path, key: Path) -> ssl.SSLContext:
    context = Context(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Renegotiation makes the server compute while the client does not (RFC 5746 section 5).
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except ssl.SSLError as fault:
        reason = fault.reason or "it is encrypted, or not PEM"
        raise TlsError(f"{cert} and {key} are no pair in PEM: {reason}") from None
    except OSError as fault:
        if fault.errno in PASSING:
            raise
        missing = next((path for path in (cert, key) if not path.is_file()), cert)
        raise TlsError(f"{missing}: {fault.strerror}") from None
    return context


def _no_password() -> str:
    # Without this OpenSSL would ask on the terminal, and a service would hang at its start.
    return ""
