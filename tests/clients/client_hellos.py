"""First messages of a TLS client, for connections that never complete the handshake."""

from __future__ import annotations

import ssl

#: The header of a record of 512 bytes, and its first two bytes.
PARTIAL_CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00"


def client_hello() -> bytes:
    """Return a complete ClientHello."""
    outgoing = ssl.MemoryBIO()
    try:
        ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("the handshake completed without a server")
