"""TLS where bytes are moved by hand: for programs that find the API as one does in a pod, which is by https alone."""

from __future__ import annotations

import ssl

_READ = 1 << 16
#: The first byte of whoever speaks TLS (RFC 8446, ContentType: handshake); no request of HTTP begins with it.
_HANDSHAKE = 0x16


class TlsSession:
    """One connection over TLS. It reads and writes nothing itself: bytes go in, and bytes come out."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._arrived, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._arrived, self._leaving, server_side=True)
        self._is_greeted = False

    def open(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what was said in `data`, and what has to be answered by the protocol itself. Raises OSError."""
        self._arrived.write(data)
        words = b""
        try:
            if not self._is_greeted:
                self._session.do_handshake()
                self._is_greeted = True
            while piece := self._session.read(_READ):
                words += piece
        except ssl.SSLWantReadError:
            pass
        return words, self._leaving.read()

    def seal(self, data: bytes) -> bytes:
        """Return what has to be sent for `data` to be heard."""
        self._session.write(data)
        return self._leaving.read()


def tls_session(data: bytes, context: ssl.SSLContext | None) -> TlsSession | None:
    """Return the session of a client whose first bytes are `data`, if it speaks TLS and is understood."""
    return TlsSession(context) if context is not None and data[0] == _HANDSHAKE else None
