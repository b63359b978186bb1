"""The first words of a TLS client, for those that do not mean to go on."""

from __future__ import annotations

import ssl

#: The header of a record of 512 bytes, and the first two of them.
HALF_A_GREETING = b"\x16\x03\x01\x02\x00\x01\x00"


def greeting() -> bytes:
    """Return a whole ClientHello."""
    outgoing = ssl.MemoryBIO()
    try:
        ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake takes two")
