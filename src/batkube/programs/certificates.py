"""A certificate for a program that serves over TLS and does not start without one, though nobody ever asks it."""

from __future__ import annotations

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from batkube.kernel.instants import EPOCH
from batkube.kernel.private_files import write_private

#: As long as any run may last.
_VALID = datetime.timedelta(days=365 * 300)


def write_certificates(folder: Path, name: str) -> str:
    """Write `tls.crt` and `tls.key`, as secrets of Kubernetes call them, into a new folder, and return its path.

    The key is another one each time. All else is the same to the byte, and so are all lengths (RFC 8410): a program
    that reads them does the same in every run.
    """
    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(EPOCH)
        .not_valid_after(EPOCH + _VALID)
        .sign(key, algorithm=None)
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_private(folder / "tls.crt", certificate.public_bytes(serialization.Encoding.PEM))
    write_private(folder / "tls.key", secret)
    return str(folder)
