"""Remove duplicate owner references, with a warning.

Kubernetes: apiserver/pkg/endpoints/handlers/rest.go, dedupOwnerReferencesAndAddWarning.
"""

from __future__ import annotations

from batkube.cluster.store import KubeObject

_DUPLICATE_OWNERS_WARNING = (
    "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your "
    "requests; duplicate UID(s) observed: "
)


def drop_duplicate_owners(value: KubeObject, warnings: list[str], *, admitted: bool = False) -> None:
    """Remove duplicate owner references of an object; `admitted`: whether mutating admission has already run."""
    references = value["metadata"].get("ownerReferences")
    if not references or len(references) < 2:
        return
    distinct: list[KubeObject] = []
    repeated = []
    seen: set[tuple[tuple[str, object], ...]] = set()
    for reference in references:
        identity = tuple(sorted(reference.items()))
        if identity in seen:
            repeated.append(reference.get("uid", ""))
        else:
            seen.add(identity)
            distinct.append(reference)
    if repeated:
        suffix = " after mutating admission happens" if admitted else ""
        warnings.append(
            f".metadata.ownerReferences contains duplicate entries{suffix}; "
            f"{_DUPLICATE_OWNERS_WARNING}{', '.join(repeated)}"
        )
        value["metadata"]["ownerReferences"] = distinct
