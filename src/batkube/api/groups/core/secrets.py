"""Secrets: their types, and the keys that each type requires.

Kubernetes: pkg/apis/core and pkg/registry/core/secret.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from batkube.api.decoding.json_syntax import ParseError, check_syntax
from batkube.api.groups.core.config_maps import SIZE_LIMIT, check_immutable_data, decoded_size
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.kind_model.defaults import fill_empty
from batkube.api.groups.kind_model.kind import Kind, create_warnings_on_update
from batkube.api.printing.ages import age
from batkube.api.validation.metadata import check_built_in_metadata
from batkube.api.validation.names import config_key, subdomain_name
from batkube.api.validation.problems import Problems
from batkube.api.validation.rules import Object, ValidationRules, validate_metadata_update
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

_PEM = re.compile(rb"^-----BEGIN ([^\n-]*)-----\s*\n(.*?)^-----END \1-----", re.MULTILINE | re.DOTALL)
_KEY = "PRIVATE KEY"
_SERVICE_ACCOUNT = "kubernetes.io/service-account.name"


# Defaults


def set_secret_defaults(obj: dict[str, Any]) -> None:
    """Set the type Opaque; move `stringData` to `data`."""
    fill_empty(obj, {"type": "Opaque"})
    texts = obj.pop("stringData", None)
    if texts:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


# Strategy


def prepare_secret_update(secret: dict[str, Any], old: dict[str, Any], _context: StrategyContext) -> None:
    """Keep the old type if the update omits it."""
    if not secret.get("type"):
        secret["type"] = old.get("type", "")


# Validation


def _validate_secret(value: Object, problems: Problems) -> None:
    check_built_in_metadata(value["metadata"], subdomain_name, True, problems)
    data: Mapping[str, str] = value.get("data") or {}
    for key in data:
        problems.all_invalid(f"data[{key}]", key, config_key(key))
    if sum(decoded_size(text or "") for text in data.values()) > SIZE_LIMIT:
        problems.too_long("data", SIZE_LIMIT)
    kind = value.get("type", "")
    if kind == "kubernetes.io/service-account-token":
        if not (value["metadata"].get("annotations") or {}).get(_SERVICE_ACCOUNT):
            problems.required(f"metadata.annotations[{_SERVICE_ACCOUNT}]")
    elif kind in ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson"):
        _check_docker_config(data, f".{kind.removeprefix('kubernetes.io/')}", problems)
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            problems.required("data[username]")
            problems.required("data[password]")
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            problems.required("data[ssh-privatekey]")
    elif kind == "kubernetes.io/tls":
        for key in ("tls.crt", "tls.key"):
            if key not in data:
                problems.required(f"data[{key}]")


def _check_docker_config(data: Mapping[str, str], key: str, problems: Problems) -> None:
    if key not in data:
        problems.required(f"data[{key}]")
        return
    content = base64.b64decode(data[key] or "")
    wrong = ""
    try:
        check_syntax(content)
    except ParseError as problem:
        wrong = str(problem)
    kinds = {b'"': "string", b"[": "array", b"t": "bool", b"f": "bool", b"n": "", b"{": ""}
    if not wrong and (kind := kinds.get(content.strip()[:1], "number")):
        wrong = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    if wrong:
        problems.invalid(f"data[{key}]", "<secret contents redacted>", wrong)


def _validate_secret_update(new: Object, old: Object, problems: Problems) -> None:
    validate_metadata_update(new, old, problems)
    problems.unchanged("type", new.get("type", ""), old.get("type", ""))
    check_immutable_data(new, old, ("data",), problems)
    _validate_secret(new, problems)


# Columns


def secret_cells(value: KubeObject, now: Instant) -> list[Any]:
    """Return the cells of a Secret."""
    return [value["metadata"].get("name", ""), value.get("type", ""), len(value.get("data") or ()), age(value, now)]


# Warnings


def secret_warnings(secret: Mapping[str, Any]) -> list[str]:
    """Return a warning if a TLS secret's certificate or key is invalid (Go: crypto/tls, X509KeyPair)."""
    if secret.get("type") != "kubernetes.io/tls":
        return []
    data = secret.get("data") or {}
    certificate, key = (base64.b64decode(data.get(name) or "") for name in ("tls.crt", "tls.key"))
    problem = _key_pair_problem(_pem_blocks(certificate), _pem_blocks(key))
    return [problem] if problem else []


def _pem_blocks(text: bytes) -> list[tuple[str, bytes]]:
    """Return the types and contents of the PEM blocks in a text."""
    blocks = []
    for match in _PEM.finditer(text):
        try:
            blocks.append((match[1].decode("latin-1"), base64.b64decode(b"".join(match[2].split()), validate=True)))
        except ValueError:
            continue
    return blocks


def _key_pair_problem(certificates: list[tuple[str, bytes]], keys: list[tuple[str, bytes]]) -> str:
    chain = [content for kind, content in certificates if kind == "CERTIFICATE"]
    if not chain:
        return _missing_certificate_message([kind for kind, _ in certificates])
    secrets = [content for kind, content in keys if kind == _KEY or kind.endswith(f" {_KEY}")]
    if not secrets:
        return _missing_key_message([kind for kind, _ in keys])
    # Imported lazily: importing it takes longer than most runs can spare.
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


def _missing_certificate_message(skipped: list[str]) -> str:
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


def _missing_key_message(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in key input"
    if skipped == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
        f"following types: [{' '.join(skipped)}]"
    )


#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "secrets": Kind(
        defaults={"v1": set_secret_defaults},
        prepare_update={"": prepare_secret_update},
        rules=ValidationRules(_validate_secret, _validate_secret_update),
        cells=secret_cells,
        warnings_on_create=secret_warnings,
        warnings_on_update={"": create_warnings_on_update(secret_warnings)},
    ),
}
