"""TLS certificates of external programs that require one to start, and of the run's API server.

The server needs one for programs that access the API as in a pod.
"""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import NameOID

from batkube.files.private import write_private
from batkube.kernel.instants import EPOCH

#: Certificates are valid before the run, when programs start, and for as long as virtual time can last.
_BEFORE = datetime.timedelta(days=1)
_VALID = datetime.timedelta(days=365 * 300)
#: All key usages (RFC 5280, 4.2.1.3).
_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def write_certificates(folder: Path, name: str, address: str = "") -> str:
    """Create `tls.crt` and `tls.key` (the key names of Kubernetes' TLS Secrets) in a new folder, and return its path.

    With an `address`, the certificate is for a server at this address, self-signed and trusted on its own.

    The key differs in each run. Everything else is identical, including all lengths (RFC 8410), so that a
    program takes the same steps to read the certificate in each run.
    """
    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(EPOCH - _BEFORE)
        .not_valid_after(EPOCH + _VALID)
    )
    if address:
        builder = _server_certificate(builder, key.public_key(), address)
    certificate = builder.sign(key, algorithm=None)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_private(folder / "tls.crt", certificate.public_bytes(serialization.Encoding.PEM))
    write_private(folder / "tls.key", secret)
    return str(folder)


def _server_certificate(
    builder: x509.CertificateBuilder, key: Ed25519PublicKey, address: str
) -> x509.CertificateBuilder:
    """Add the extensions of a server certificate that is its own authority, as strict clients require them."""
    names = [x509.IPAddress(ipaddress.ip_address(address)), x509.DNSName("localhost")]
    usage = dict.fromkeys(_USAGES, False) | {"digital_signature": True, "key_cert_sign": True}
    return (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key), critical=False)
    )
