"""Warnings about secrets and service accounts. Kubernetes: pkg/registry/core/{secret,serviceaccount}/strategy.go."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

_ENFORCE = "kubernetes.io/enforce-mountable-secrets"
_PEM = re.compile(rb"^-----BEGIN ([^\n-]*)-----\s*\n(.*?)^-----END \1-----", re.MULTILINE | re.DOTALL)
_KEY = "PRIVATE KEY"


def of_secret(secret: Mapping[str, Any]) -> list[str]:
    """A TLS secret should hold a certificate and its key (Go: crypto/tls, X509KeyPair)."""
    if secret.get("type") != "kubernetes.io/tls":
        return []
    data = secret.get("data") or {}
    certificate, key = (base64.b64decode(data.get(name) or "") for name in ("tls.crt", "tls.key"))
    problem = _pair_problem(_blocks(certificate), _blocks(key))
    return [problem] if problem else []


def _blocks(text: bytes) -> list[tuple[str, bytes]]:
    """Return the PEM blocks of a text: their types and contents."""
    found = []
    for match in _PEM.finditer(text):
        try:
            found.append((match[1].decode("latin-1"), base64.b64decode(b"".join(match[2].split()), validate=True)))
        except ValueError:
            continue
    return found


def _pair_problem(certificates: list[tuple[str, bytes]], keys: list[tuple[str, bytes]]) -> str:
    chain = [content for kind, content in certificates if kind == "CERTIFICATE"]
    if not chain:
        return _without_certificate([kind for kind, _ in certificates])
    secrets = [content for kind, content in keys if kind == _KEY or kind.endswith(f" {_KEY}")]
    if not secrets:
        return _without_key([kind for kind, _ in keys])
    # Imported only where it is needed: it takes longer to load than most runs have for it.
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key

    try:
        certificate = x509.load_der_x509_certificate(chain[0])
    except ValueError:
        return "x509: malformed certificate"
    try:
        key = load_der_private_key(secrets[0], None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    public, own = certificate.public_key(), key.public_key()
    if type(public) is not type(own):
        return "tls: private key type does not match public key type"
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "" if public.public_bytes(*form) == own.public_bytes(*form) else "tls: private key does not match public key"


def _without_certificate(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in certificate input"
    if len(skipped) == 1 and skipped[0].endswith(_KEY):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may "
            "have been switched"
        )
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following '
        f"types: [{' '.join(skipped)}]"
    )


def _without_key(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in key input"
    if skipped == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
        f"following types: [{' '.join(skipped)}]"
    )


def of_service_account(account: Mapping[str, Any]) -> list[str]:
    """The annotation that limits which secrets may be mounted is going away."""
    if _ENFORCE not in (account["metadata"].get("annotations") or {}):
        return []
    return [
        f"metadata.annotations[{_ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to "
        "mounted secrets"
    ]


def of_changed_service_account(account: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """Who keeps the annotation was told before."""
    return [] if of_service_account(old) else of_service_account(account)
