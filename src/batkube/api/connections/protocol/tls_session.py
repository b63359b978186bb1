"""TLS over in-memory buffers, for polled connections: programs with an in-cluster configuration require https."""

from __future__ import annotations

import ssl

_READ_BYTES = 1 << 16
#: The first byte of a TLS connection (RFC 8446, ContentType: handshake); no HTTP request begins with it.
_TLS_HANDSHAKE_RECORD = 0x16


class TlsSession:
    """The server side of one TLS connection, without I/O: it maps bytes to bytes."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.is_greeted = False

    def decrypt(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the plaintext of `data`, and protocol messages to send back. Raises OSError."""
        self._incoming.write(data)
        plaintext = b""
        try:
            if not self.is_greeted:
                self._session.do_handshake()
                self.is_greeted = True
            while piece := self._session.read(_READ_BYTES):
                plaintext += piece
        except ssl.SSLWantReadError:
            pass
        return plaintext, self._outgoing.read()

    def encrypt(self, data: bytes) -> bytes:
        """Return the ciphertext of `data`."""
        self._session.write(data)
        return self._outgoing.read()


def open_tls_session(data: bytes, context: ssl.SSLContext | None) -> TlsSession | None:
    """Return a new session if the first bytes `data` of a connection are TLS and there is a context, else None."""
    return TlsSession(context) if context is not None and data[0] == _TLS_HANDSHAKE_RECORD else None
