"""Lists: resource versions, limits and continue tokens.

Follows apiserver/pkg/storage (etcd3/store.go and cacher/cacher.go) in the semantics of resourceVersion,
resourceVersionMatch, limit and continue.
"""

from __future__ import annotations

import base64
import posixpath
import re
from typing import Any

import msgspec

from batkube.api.decoding.json_syntax import ParseError, check_syntax
from batkube.api.requests.options import ListOptions, parse_resource_version
from batkube.api.requests.statuses import Failure, bad_request
from batkube.api.verbs.storage.selection import Selection
from batkube.cluster.sorted_view import SortedView
from batkube.cluster.store import Compacted, Entry, Key, Store

_TOKEN_VERSION = "meta.k8s.io/v1"
#: Finds a character that is not in the URL-safe base64 alphabet.
_find_invalid_character = re.compile("[^A-Za-z0-9_-]").search
_NO_CONSISTENT_PAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Page(msgspec.Struct):
    """A page of a list: its entries and list metadata."""

    entries: list[Entry]
    metadata: dict[str, Any]


def resource_version_too_large(version: int, current: int) -> Failure:
    """Return the 504 for a version that does not exist yet, for which kube-apiserver waits some seconds first."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return Failure(504, "Timeout", message, details)


def expired(message: str, token: str = "") -> Failure:
    """Return the 410 for a version that was compacted."""
    return Failure(410, "Expired", message, metadata={"continue": token} if token else {})


def _encode_token(version: int, start: str) -> str:
    """Return a continue token in kube-apiserver's format."""
    # Kubernetes: apiserver/pkg/storage/continue.go, EncodeContinue.
    token = msgspec.json.encode({"v": _TOKEN_VERSION, "rv": version, "start": start})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _decode_token(token: str, prefix: str) -> tuple[int, Key]:
    """Return the version and the start key in a continue token; raises a 400."""
    # Kubernetes: apiserver/pkg/storage/continue.go, DecodeContinue.

    def invalid_token(problem: str) -> Failure:
        return bad_request(f"invalid continue token: continue key is not valid: {problem}")

    invalid_character = _find_invalid_character(token)
    if invalid_character or len(token) % 4 == 1:
        raise invalid_token(
            f"illegal base64 data at input byte {invalid_character.start() if invalid_character else len(token) - 1}"
        )
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise invalid_token(_json_error(raw)) from problem
    if not isinstance(value, dict) or value.get("v") != _TOKEN_VERSION:
        encoding = value.get("v", "") if isinstance(value, dict) else ""
        raise invalid_token(f"server does not recognize this encoded version {encoding}")
    version, start = value.get("rv"), value.get("start")
    if not isinstance(version, int) or version == 0:
        raise invalid_token("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise invalid_token("encoded start key empty (version meta.k8s.io/v1)")
    key = "/" + start.removeprefix("/")
    if posixpath.normpath(key) != key:
        raise invalid_token(start)
    return version, Key(prefix + key[1:])


def _json_error(data: bytes) -> str:
    try:
        check_syntax(data)
    except ParseError as problem:
        return str(problem)
    return "invalid UTF-8"


def list_page(store: Store, storage: str, namespace: str, selection: Selection, options: ListOptions) -> Page:
    """Return a page of a list."""
    prefix = f"{namespace}/" if namespace else ""
    if options.continue_token:
        return _next_page(store, storage, prefix, selection, options)
    try:
        version = parse_resource_version(options.resource_version)
    except ValueError as problem:
        raise bad_request(f"invalid resource version: {problem}") from problem
    if version > store.version:
        raise resource_version_too_large(version, store.version)
    # Without resourceVersionMatch, a version with a limit is exact. Version 0 (any) ignores the limit, since
    # kube-apiserver serves it from the watch cache.
    exact = options.resource_version_match == "Exact" or (
        version and not options.resource_version_match and options.limit
    )
    limit = options.limit if options.resource_version != "0" else 0
    if not exact:
        return _page_from(store.view(storage), limit, store.version, prefix, selection)
    try:
        view = store.view(storage, version)
    except Compacted as problem:
        raise expired("The resourceVersion for the provided list is too old.") from problem
    return _page_from(view, limit, version, prefix, selection)


def _next_page(store: Store, storage: str, prefix: str, selection: Selection, options: ListOptions) -> Page:
    version, start = _decode_token(options.continue_token, prefix)
    if options.resource_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    if version < 0:
        version = store.version
    if version > store.version:
        raise resource_version_too_large(version, store.version)
    try:
        view = store.view(storage, version)
    except Compacted as problem:
        relative = "/" + start.removeprefix(prefix)
        raise expired(_NO_CONSISTENT_PAGE, _encode_token(-1, relative)) from problem
    limit = 0 if options.resource_version == "0" else options.limit
    return _page_from(view, limit, version, prefix, selection, start)


def _page_from(
    view: SortedView[Key, Entry], limit: int, version: int, prefix: str, selection: Selection, start: str = ""
) -> Page:
    """Return the first `limit` entries from `start` on, with a continue token for the rest.

    kube-apiserver sets the token if there are more keys, whether they match or not, so the next page may be empty. If
    it finds the matches by an index, it sets the token only if more objects match.
    """
    page = selection.select(view, start, limit or None)
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if limit and len(page) >= limit and not selection.is_single:
        last = page[-1][0]
        if selection.is_indexed:
            remaining = len(selection.select(view, f"{last}\0", 1))
        else:
            remaining = selection.count_keys(view, f"{last}\0")
        if remaining:
            metadata["continue"] = _encode_token(version, f"/{last.removeprefix(prefix)}\0")
            if not selection.is_partial:
                metadata["remainingItemCount"] = remaining
    return Page([entry for _, entry in page], metadata)
