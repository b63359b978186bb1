"""In which form an answer goes out: media type, and whether as a Table or as metadata only.

Two steps as in the real server: the route refuses what it cannot produce at all, then the `Accept` clauses are tried in
the order of their quality (apiserver/pkg/endpoints/handlers/negotiation).
"""

from __future__ import annotations

import msgspec

from batkube.api.requests.messages import JSON
from batkube.api.requests.statuses import Failure
from batkube.kernel.memo import memoized

YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
STREAM_MEDIA_TYPES = (JSON + ";stream=watch", PROTOBUF + ";stream=watch")
BUILT_IN_MEDIA_TYPES = (JSON, YAML, PROTOBUF)
CUSTOM_MEDIA_TYPES = (JSON, YAML)

TABLE = "Table"
PARTIAL = "PartialObjectMetadata"
PARTIAL_LIST = "PartialObjectMetadataList"
_TRANSFORMS = {
    TABLE: ("v1", "v1beta1"),
    PARTIAL: ("v1", "v1beta1"),
    PARTIAL_LIST: ("v1", "v1beta1"),
}


class ResponseForm(msgspec.Struct, frozen=True):
    """How an answer is written."""

    media_type: str = JSON
    #: "" for the object itself, or TABLE, PARTIAL, PARTIAL_LIST.
    transform: str = ""
    #: The version of meta.k8s.io asked for with a transform.
    version: str = "v1"
    pretty: bool = False


PLAIN_FORM = ResponseForm()


class _Clause(msgspec.Struct):
    main_type: str
    subtype: str
    quality: float
    parameters: dict[str, str]


def _parse_accept(accept: str) -> list[_Clause]:
    """Return the clauses of an Accept header, best first (bitbucket.org/ww/goautoneg: quality, then order)."""
    clauses = []
    for text in accept.split(","):
        kind, *parameters = (part.strip() for part in text.split(";"))
        main, slash, sub = kind.partition("/")
        if not slash:
            if main != "*":
                continue
            sub = "*"
        named = dict(part.partition("=")[::2] for part in parameters)
        try:
            quality = float(named.pop("q", "1"))
        except ValueError:
            quality = 1.0
        clauses.append(_Clause(main.strip(), sub.strip(), quality, named))
    return sorted(clauses, key=lambda clause: -clause.quality)


def check_accepts(accept: str, produced: tuple[str, ...]) -> None:
    """Refuse a request as go-restful's routes do: unless one clause of it is `*/*` or literally what is produced."""
    for text in accept.split(",") if accept else ():
        kind = text.strip()
        bare = kind.partition(";")[0].strip()
        if bare == "*/*" or bare in produced or kind in produced:
            return
    if accept:
        message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}"
        raise Failure(406, "NotAcceptable", message, {})


def _form_of_clause(clause: _Clause, media_type: str, transforms: bool, tables: bool) -> ResponseForm | None:
    """Return the form that `clause` asks for in `media_type`, or None when it cannot be served."""
    parameters = clause.parameters
    wanted = parameters.get("as", "")
    if wanted:
        version = parameters.get("v", "")
        known = _TRANSFORMS.get(wanted, ())
        if not transforms or parameters.get("g", "") != "meta.k8s.io" or version not in known:
            return None
        if wanted == TABLE and (media_type == PROTOBUF or not tables):
            return None
        return ResponseForm(media_type, wanted, version, parameters.get("pretty") == "1")
    return ResponseForm(media_type, pretty=parameters.get("pretty") == "1")


@memoized(1024)
def negotiate(
    accept: str,
    offered: tuple[str, ...] = BUILT_IN_MEDIA_TYPES,
    streams: bool = False,
    tables: bool = True,
    transforms: bool = True,
    routed: bool = True,
) -> ResponseForm:
    """Return the form of the answer; raises the 406 of the real server when there is none."""
    if not accept:
        return PLAIN_FORM
    if routed:
        check_accepts(
            accept,
            (*offered, *(kind for kind in STREAM_MEDIA_TYPES if kind.partition(";")[0] in offered))
            if streams
            else offered,
        )
    for clause in _parse_accept(accept):
        for media_type in offered:
            main, _, sub = media_type.partition("/")
            if clause.main_type in ("*", main) and clause.subtype in ("*", sub):
                form = _form_of_clause(clause, media_type, transforms, tables)
                if form is not None:
                    return form
    raise Failure(406, "NotAcceptable", "only the following media types are accepted: " + ", ".join(offered))


def negotiate_failure(accept: str) -> ResponseForm:
    """Return the form of a failure's Status: what was asked for if that can be had, JSON otherwise."""
    try:
        form = negotiate(accept)
    except Failure:
        return PLAIN_FORM
    return ResponseForm(form.media_type)
