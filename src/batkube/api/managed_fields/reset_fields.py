"""Fields that a write cannot change, so that nobody comes to own them by it.

A write to an object leaves its status alone, a write to the status leaves the rest alone; the strategies of the real
server say so per kind (`GetResetFields`), and this is their table. Sub-resources that write less than they are given
without saying so, such as a pod's `resize`, make the client an owner of all it sent: so does the real server.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from batkube.api.managed_fields.field_sets import LEAF, FieldSet, without
from batkube.cluster.kinds import Resource

_STATUS: FieldSet = {"f:status": LEAF}
_SPEC: FieldSet = {"f:spec": LEAF}
_METADATA_AND_SPEC: FieldSet = {"f:metadata": LEAF, "f:spec": LEAF}

#: By storage name and sub-resource, where it is not "f:status" for the object and "f:spec" for its status.
_EXCEPTIONS: dict[tuple[str, str], FieldSet] = {
    ("pods", "status"): {**_SPEC, "f:metadata": {"f:deletionTimestamp": LEAF, "f:ownerReferences": LEAF}},
    ("deployments.apps", "status"): {**_SPEC, "f:metadata": {"f:labels": LEAF}},
    ("namespaces", "finalize"): _STATUS,
    ("certificatesigningrequests.certificates.k8s.io", ""): {**_SPEC, **_STATUS},
    ("certificatesigningrequests.certificates.k8s.io", "status"): {**_SPEC, "f:status": {"f:conditions": LEAF}},
    ("certificatesigningrequests.certificates.k8s.io", "approval"): {**_SPEC, "f:status": {"f:certificate": LEAF}},
    ("podcertificaterequests.certificates.k8s.io", ""): {},
    ("servicecidrs.networking.k8s.io", ""): {},
    ("servicecidrs.networking.k8s.io", "status"): {},
    ("apiservices.apiregistration.k8s.io", "status"): _METADATA_AND_SPEC,
    ("customresourcedefinitions.apiextensions.k8s.io", "status"): _METADATA_AND_SPEC,
    ("flowschemas.flowcontrol.apiserver.k8s.io", "status"): _METADATA_AND_SPEC,
    ("prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "status"): _METADATA_AND_SPEC,
    ("storageversionmigrations.storagemigration.k8s.io", "status"): _METADATA_AND_SPEC,
    ("storageversions.internal.apiserver.k8s.io", "status"): _METADATA_AND_SPEC,
    ("validatingadmissionpolicies.admissionregistration.k8s.io", "status"): _METADATA_AND_SPEC,
    ("volumeattachments.storage.k8s.io", "status"): _METADATA_AND_SPEC,
}


class ResetFields(NamedTuple):
    """What one kind of write cannot change."""

    #: Top-level fields, as a whole.
    top_level: frozenset[str]
    #: All of it.
    excluded: FieldSet

    def exclude_from(self, fields: FieldSet) -> FieldSet:
        """Return those of `fields` that the write can change."""
        return without(fields, self.excluded)

    @property
    def is_top_level_only(self) -> bool:
        """Whether looking away from the top-level fields is all that `apart` does."""
        return len(self.excluded) == len(self.top_level)


def reset_fields(resource: Resource, subresource: str) -> ResetFields:
    """Return what a write to a (sub-)resource cannot change."""
    return _reset_fields(resource.storage, subresource, "status" in resource.subresources)


@functools.lru_cache(maxsize=1024)  # and not of resources: the schema of a definition that was deleted would stay
def _reset_fields(storage: str, subresource: str, has_status: bool) -> ResetFields:
    excluded = _EXCEPTIONS.get((storage, subresource))
    if excluded is None:
        excluded = _SPEC if subresource == "status" else _STATUS if has_status and not subresource else {}
    top = frozenset(element[2:] for element, node in excluded.items() if not node)
    return ResetFields(top, excluded)
