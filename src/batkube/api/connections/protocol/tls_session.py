"""TLS where bytes are moved by hand: for programs that find the API as one does in a pod, which is by https alone."""

from __future__ import annotations

import ssl

_READ_BYTES = 1 << 16
#: The first byte of whoever speaks TLS (RFC 8446, ContentType: handshake); no request of HTTP begins with it.
_TLS_HANDSHAKE_RECORD = 0x16


class TlsSession:
    """One connection over TLS. It reads and writes nothing itself: bytes go in, and bytes come out."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_greeted = False

    def decrypt(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what was said in `data`, and what has to be answered by the protocol itself. Raises OSError."""
        self._incoming.write(data)
        words = b""
        try:
            if not self.is_greeted:
                self._session.do_handshake()
                self.is_greeted = True
            while piece := self._session.read(_READ_BYTES):
                words += piece
        except ssl.SSLWantReadError:
            pass
        return words, self._outgoing.read()

    def encrypt(self, data: bytes) -> bytes:
        """Return what has to be sent for `data` to be heard."""
        self._session.write(data)
        return self._outgoing.read()


def open_tls_session(data: bytes, context: ssl.SSLContext | None) -> TlsSession | None:
    """Return the session of a client whose first bytes are `data`, if it speaks TLS and is understood."""
    return TlsSession(context) if context is not None and data[0] == _TLS_HANDSHAKE_RECORD else None
