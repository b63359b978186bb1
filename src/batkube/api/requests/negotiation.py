"""Content negotiation: choose the media type of a response, and whether it is a Table or metadata only.

As in kube-apiserver there are two steps. First the route rejects a request that accepts none of its media types
(go-restful). Then the `Accept` clauses are tried in the order of their quality
(Kubernetes: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go).
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
    """How a response is encoded."""

    media_type: str = JSON
    #: "" for the object itself, or TABLE, PARTIAL, PARTIAL_LIST.
    transform: str = ""
    #: The version of meta.k8s.io in which a transform is requested.
    version: str = "v1"
    pretty: bool = False


PLAIN_FORM = ResponseForm()


class _Clause(msgspec.Struct):
    main_type: str
    subtype: str
    quality: float
    parameters: dict[str, str]


def _parse_accept(accept: str) -> list[_Clause]:
    """Return the clauses of an Accept header by quality, then by order (as k8s.io/kube-openapi's goautoneg)."""
    clauses = []
    for text in accept.split(","):
        kind, *parameters = (part.strip() for part in text.split(";"))
        main, slash, sub = kind.partition("/")
        if not slash:
            if main != "*":
                continue
            sub = "*"
        options = dict(part.partition("=")[::2] for part in parameters)
        try:
            quality = float(options.pop("q", "1"))
        except ValueError:
            quality = 1.0
        clauses.append(_Clause(main.strip(), sub.strip(), quality, options))
    return sorted(clauses, key=lambda clause: -clause.quality)


def check_accepts(accept: str, produced: tuple[str, ...]) -> None:
    """Raise a 406 unless one Accept clause is `*/*` or literally one of `produced`, as go-restful does."""
    for text in accept.split(",") if accept else ():
        kind = text.strip()
        bare = kind.partition(";")[0].strip()
        if bare == "*/*" or bare in produced or kind in produced:
            return
    if accept:
        message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}"
        raise Failure(406, "NotAcceptable", message, {})


def _form_of_clause(clause: _Clause, media_type: str, transforms: bool, tables: bool) -> ResponseForm | None:
    """Return the form that `clause` requests in `media_type`, or None if it is not supported."""
    # Kubernetes: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go, acceptMediaTypeOptions.
    parameters = clause.parameters
    transform = parameters.get("as", "")
    if transform:
        version = parameters.get("v", "")
        versions = _TRANSFORMS.get(transform, ())
        if not transforms or parameters.get("g", "") != "meta.k8s.io" or version not in versions:
            return None
        if transform == TABLE and (media_type == PROTOBUF or not tables):
            return None
        return ResponseForm(media_type, transform, version, parameters.get("pretty") == "1")
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
    """Return the form of the response; raises kube-apiserver's 406 if no clause can be satisfied."""
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
    """Return the form of an error Status: the requested media type if it is supported, else JSON."""
    try:
        form = negotiate(accept)
    except Failure:
        return PLAIN_FORM
    return ResponseForm(form.media_type)
