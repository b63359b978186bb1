"""Reset fields: fields that a write cannot change. Its manager therefore does not become their owner.

A write to an object does not change its status, and a write to the subresource `status` changes nothing else. In
kube-apiserver the strategy of each kind declares this (`GetResetFields`); this module is the table. Some subresources
ignore fields without declaring so (a pod's `resize`). Their clients become owners of all fields that they send, as in
kube-apiserver.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from batkube.api.managed_fields.field_sets import LEAF, FieldSet, without
from batkube.cluster.kinds import Resource

_STATUS: FieldSet = {"f:status": LEAF}
_SPEC: FieldSet = {"f:spec": LEAF}
_METADATA_AND_SPEC: FieldSet = {"f:metadata": LEAF, "f:spec": LEAF}

#: By storage name and subresource, where the default ("f:status" for the object, "f:spec" for its status) is wrong.
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
    """The fields that one kind of write cannot change."""

    #: Top-level fields, including everything below them.
    top_level: frozenset[str]
    #: The same as a field set.
    excluded: FieldSet

    def exclude_from(self, fields: FieldSet) -> FieldSet:
        """Return the fields that the write can change."""
        return without(fields, self.excluded)

    @property
    def is_top_level_only(self) -> bool:
        """Whether `excluded` contains top-level fields only."""
        return len(self.excluded) == len(self.top_level)


def reset_fields(resource: Resource, subresource: str) -> ResetFields:
    """Return the fields that a write to a resource or subresource cannot change."""
    return _reset_fields(resource.storage, subresource, "status" in resource.subresources)


# Keyed by name, so that the cache does not keep the schema of a deleted definition alive.
@functools.lru_cache(maxsize=1024)
def _reset_fields(storage: str, subresource: str, has_status: bool) -> ResetFields:
    excluded = _EXCEPTIONS.get((storage, subresource))
    if excluded is None:
        excluded = _SPEC if subresource == "status" else _STATUS if has_status and not subresource else {}
    top = frozenset(element[2:] for element, node in excluded.items() if not node)
    return ResetFields(top, excluded)
