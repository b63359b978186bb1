"""Generate the server's certificate authority and serving certificate.

Kubernetes clients send tokens over TLS only (client-go: rest.IsConfigTransportTLS), so even a server on the loopback
interface needs a certificate. Both are generated at every start; the keys are never kept on disk.
"""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from batkube.files.private import write_private
from batkube.files.temporary import temporary_file_errors
from batkube.kernel.instants import EPOCH, Instant

#: Names by which pods and local clients reach an API server, as in kubeadm's certificates.
_DNS_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_IP_ADDRESSES = ("127.0.0.1", "::1", "10.96.0.1")
#: The validity starts in the past, since clocks of clients differ, and outlasts any server process.
_CLOCK_SKEW, _VALIDITY = datetime.timedelta(days=1), datetime.timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class ServerCredentials:
    """The server's TLS context, and the CA certificate with which clients verify it."""

    #: PEM.
    ca_certificate: bytes
    tls_context: ssl.SSLContext


def new_server_credentials(host: str, now: Instant) -> ServerCredentials:
    """Return new credentials, valid for `host`, the machine's name and the usual names of an API server.

    `now` is real time, relative to `EPOCH`.
    """
    date_time = EPOCH + datetime.timedelta(microseconds=now // 1000)
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = _x509_name("batkube-ca")
    authority = (
        _certificate_builder(issuer, issuer, authority_key.public_key(), date_time)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    names = [*_DNS_NAMES, *_IP_ADDRESSES, host, socket.gethostname()]
    certificate = (
        _certificate_builder(_x509_name("kube-apiserver"), issuer, key.public_key(), date_time)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_subject_alternative_names(names)), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return ServerCredentials(_pem(authority), _server_tls_context(_pem(certificate), key))


def _x509_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate_builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, date_time: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(date_time - _CLOCK_SKEW)
        .not_valid_after(date_time + _VALIDITY)
    )


def _subject_alternative_names(hosts: Iterable[str]) -> list[x509.GeneralName]:
    names: dict[str, x509.GeneralName] = {}
    for host in hosts:
        try:
            names[host] = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            names[host] = x509.DNSName(host)
    return list(names.values())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _server_tls_context(certificate: bytes, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    """Return the TLS context of the server.

    Python loads keys from files only, so the key is briefly in a temporary file.
    """
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with temporary_file_errors(), tempfile.TemporaryDirectory(prefix="batkube-") as folder:
        path = Path(folder) / "server.pem"
        write_private(path, certificate + secret)
        context.load_cert_chain(path)
    return context
