"""The files behind the door: keys and certificate, read at the start and again when they change."""

import logging
from pathlib import Path
from typing import Any, Final

from playhead.gateway.access_file import Unread, Watched, load, others_may_write
from playhead.gateway.access_keys import KeyFileError, KeyRing
from playhead.gateway.access_tls import Tls, TlsError
from playhead.gateway.settings import Settings, SettingsError

log: Final = logging.getLogger("playhead.gateway.access")


class Guard:
    """``keys``: those of the file as last read; None: nobody is asked for a key.

    Raises :class:`SettingsError` for files that cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        self.keys: KeyRing | None = None
        self._tls: Tls | None = None
        self._path = None if settings.keys is None else Path(settings.keys)
        try:
            if self._path is not None:
                self._watched = Watched(self._path)
                self.keys = load(self._path)
                self._warn(self._path)
            if settings.tls_cert is not None and settings.tls_key is not None:
                self._tls = Tls(Path(settings.tls_cert), Path(settings.tls_key))
        except KeyFileError as fault:
            raise SettingsError(f"--keys: {fault}") from None
        except (TlsError, OSError) as fault:
            raise SettingsError(f"--tls-cert, --tls-key: {fault}") from None

    def options(self, handshake_timeout: float) -> dict[str, Any]:
        """Keyword arguments of ``loop.create_server``: TLS, or none."""
        return {} if self._tls is None else self._tls.options(handshake_timeout)

    def refresh(self) -> bool:
        """Take up what has changed; whether the keys have.

        A key file that is gone or broken changes nothing: a slip of an editor must neither open
        the door nor close it on everybody. What could not be read for want of descriptors is read
        again, or a revocation would be lost.
        """
        if self._tls is not None:
            self._tls.refresh()
        if self._path is None or not self._watched.changed():
            return False
        try:
            self.keys = load(self._path)
        except KeyFileError as fault:
            if isinstance(fault, Unread):
                self._watched.forget()
            log.error("the keys read before stay in use: %s", fault)  # noqa: TRY400 - no traceback
            return False
        self._warn(self._path)
        log.info("%d keys from %s", len(self.keys), self._path)
        return True

    def _warn(self, path: Path) -> None:
        if others_may_write(path):
            log.warning("%s can be written by everybody: chmod o-w it", path)
