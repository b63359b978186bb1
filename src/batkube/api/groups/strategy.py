"""What each kind adds to writing, as data: the strategies of Kubernetes (pkg/registry/GROUP/KIND/strategy.go).

A kind that is not listed has neither status nor generation, may be created by POST only, and is updated whatever
version the client has seen: what most kinds do.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

Path = tuple[str, ...]
"""Fields from the top of an object down; `*` stands for every element of a list or map."""

#: What happens to the dependents of a deleted object when the request does not say (rest.GarbageCollectionPolicy).
BACKGROUND, ORPHAN, UNSUPPORTED = "Background", "Orphan", "Unsupported"

_SPEC: Path = ("spec",)
_STATUS: Path = ("status",)
_METADATA: Path = ("metadata",)
_LABELS: Path = ("metadata", "labels")

#: What writes may not change: those to the object itself nothing of its status, those to the status nothing else.
_APART: Mapping[str, tuple[Path, ...]] = {"": (_STATUS,), "status": (_SPEC,)}
#: As above, and status writes leave the metadata alone as well.
_FAR_APART: Mapping[str, tuple[Path, ...]] = {"": (_STATUS,), "status": (_SPEC, _METADATA)}


class Strategy(msgspec.Struct, frozen=True):
    """How writes to objects of one kind differ from those to others."""

    #: What a write may not change, by sub-resource (`""` for the object itself); on creation, what is cleared.
    keeps: Mapping[str, tuple[Path, ...]] = {}
    #: Changes to these are counted in metadata.generation.
    counts: tuple[Path, ...] = ()
    #: Whether a new object has generation 1; otherwise it has what the client wrote.
    numbered: bool = False
    #: A PUT to a name that does not exist creates it (AllowCreateOnUpdate).
    created_by_update: bool = False
    #: An update need not tell the version it was made from (AllowUnconditionalUpdate).
    unconditional: bool = True
    #: What becomes of dependents.
    propagation: str = BACKGROUND
    #: Fields of features that are off in this version of Kubernetes; dropped.
    disabled: tuple[Path, ...] = ()


def _counted(
    *counts: Path, keeps: Mapping[str, tuple[Path, ...]] | None = None, unconditional: bool = True
) -> Strategy:
    """Return the strategy of a kind whose generation starts at 1 and counts changes of `counts`."""
    return Strategy(keeps={} if keeps is None else keeps, counts=counts, numbered=True, unconditional=unconditional)


_WORKLOAD = _counted(_SPEC, keeps=_APART)
_TERMINATING: Path = ("status", "terminatingReplicas")
_ORPHANING = Strategy(keeps=_APART, counts=(_SPEC,), numbered=True, propagation=ORPHAN)
_WITH_STATUS = Strategy(keeps=_APART)
_UPSERT = Strategy(created_by_update=True)
_CAREFUL = Strategy(unconditional=False)
_CAREFUL_UPSERT = Strategy(created_by_update=True, unconditional=False)

_CLAIM_DISABLED = (
    ("devices", "constraints", "*", "distinctAttribute"),
    ("devices", "requests", "*", "exactly", "capacity"),
    ("devices", "requests", "*", "firstAvailable", "*", "capacity"),
)
_CLAIM_STATUS_DISABLED = tuple(
    ("status", "allocation", "devices", "results", "*", name)
    for name in ("bindingConditions", "bindingFailureConditions", "shareID", "consumedCapacity")
)
_SLICE_DISABLED = (
    ("spec", "sharedCounters"),
    ("spec", "perDeviceNodeSelection"),
    ("spec", "devices", "*", "capacity", "*", "requestPolicy"),
    *(
        ("spec", "devices", "*", name)
        for name in (
            "taints",
            "consumesCounters",
            "nodeName",
            "nodeSelector",
            "allNodes",
            "bindingConditions",
            "bindingFailureConditions",
            "bindsToNode",
            "allowMultipleAllocations",
        )
    ),
)

DEFAULT = Strategy()

STRATEGIES: Mapping[str, Strategy] = {
    "customresourcedefinitions.apiextensions.k8s.io": _counted(_SPEC, keeps=_APART, unconditional=False),
    "apiservices.apiregistration.k8s.io": Strategy(keeps=_FAR_APART, unconditional=False),
    # core
    "endpoints": _UPSERT,
    "events": Strategy(created_by_update=True, propagation=UNSUPPORTED),
    "limitranges": _UPSERT,
    "namespaces": Strategy(
        keeps={"": (_STATUS, ("spec", "finalizers")), "status": (_SPEC,), "finalize": (_STATUS,)},
    ),
    "nodes": Strategy(keeps=_APART),
    "persistentvolumeclaims": _WITH_STATUS,
    "persistentvolumes": _WITH_STATUS,
    "pods": Strategy(
        keeps={"": (_STATUS,), "status": (_SPEC, ("metadata", "ownerReferences"))}, counts=(_SPEC,), numbered=True
    ),
    "podtemplates": _counted(("template",)),
    "replicationcontrollers": _ORPHANING,
    "resourcequotas": _WITH_STATUS,
    "services": Strategy(keeps=_APART, created_by_update=True),
    # apps, batch, autoscaling, policy
    "daemonsets.apps": _WORKLOAD,
    "deployments.apps": Strategy(
        keeps={"": (_STATUS,), "status": (_SPEC, _LABELS)},
        counts=(_SPEC, ("metadata", "annotations")),
        numbered=True,
        disabled=(_TERMINATING,),
    ),
    "replicasets.apps": msgspec.structs.replace(_WORKLOAD, disabled=(_TERMINATING,)),
    "statefulsets.apps": msgspec.structs.replace(
        _WORKLOAD, disabled=(("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"),)
    ),
    "cronjobs.batch": _WORKLOAD,
    "jobs.batch": _ORPHANING,
    "horizontalpodautoscalers.autoscaling": Strategy(
        keeps=_APART, disabled=tuple(("spec", "behavior", way, "tolerance") for way in ("scaleUp", "scaleDown"))
    ),
    "poddisruptionbudgets.policy": _counted(_SPEC, keeps=_APART, unconditional=False),
    # networking, discovery
    "endpointslices.discovery.k8s.io": Strategy(
        counts=(("addressType",), ("endpoints",), ("ports",), _LABELS),
        numbered=True,
        disabled=(("endpoints", "*", "deprecatedTopology"),),
    ),
    "ingressclasses.networking.k8s.io": _counted(_SPEC),
    "ingresses.networking.k8s.io": _counted(_SPEC, keeps=_APART),
    "networkpolicies.networking.k8s.io": _counted(_SPEC),
    "servicecidrs.networking.k8s.io": Strategy(keeps={"status": (_SPEC, _METADATA)}),
    # storage
    "csidrivers.storage.k8s.io": Strategy(
        counts=(_SPEC,), unconditional=False, disabled=(("spec", "nodeAllocatableUpdatePeriodSeconds"),)
    ),
    "csinodes.storage.k8s.io": _CAREFUL,
    "csistoragecapacities.storage.k8s.io": _CAREFUL,
    "volumeattachments.storage.k8s.io": Strategy(
        keeps=_FAR_APART,
        unconditional=False,
        disabled=tuple(("status", name, "errorCode") for name in ("attachError", "detachError")),
    ),
    # access, leases, classes
    "clusterrolebindings.rbac.authorization.k8s.io": _UPSERT,
    "clusterroles.rbac.authorization.k8s.io": _UPSERT,
    "rolebindings.rbac.authorization.k8s.io": _UPSERT,
    "roles.rbac.authorization.k8s.io": _UPSERT,
    "certificatesigningrequests.certificates.k8s.io": Strategy(
        keeps={
            "": (_SPEC, _STATUS),
            "status": (_SPEC,),
            "approval": (_SPEC, ("status", "certificate")),
        }
    ),
    "leases.coordination.k8s.io": msgspec.structs.replace(
        _CAREFUL_UPSERT, disabled=(("spec", "strategy"), ("spec", "preferredHolder"))
    ),
    "priorityclasses.scheduling.k8s.io": _counted(),
    "runtimeclasses.node.k8s.io": _CAREFUL_UPSERT,
    # webhooks and policies of admission, flow control
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _counted(("webhooks",), unconditional=False),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _counted(("webhooks",), unconditional=False),
    "validatingadmissionpolicies.admissionregistration.k8s.io": _counted(_SPEC, keeps=_FAR_APART, unconditional=False),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _counted(_SPEC, unconditional=False),
    "flowschemas.flowcontrol.apiserver.k8s.io": _counted(_SPEC, keeps=_FAR_APART),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _counted(_SPEC, keeps=_FAR_APART),
    # devices
    "deviceclasses.resource.k8s.io": Strategy(
        counts=(_SPEC,), numbered=True, disabled=(("spec", "extendedResourceName"),)
    ),
    "resourceclaims.resource.k8s.io": Strategy(
        keeps=_FAR_APART,
        disabled=(
            *(("spec", *path) for path in _CLAIM_DISABLED),
            ("status", "allocation", "allocationTimestamp"),
            *_CLAIM_STATUS_DISABLED,
            ("status", "devices", "*", "shareID"),
        ),
    ),
    "resourceclaimtemplates.resource.k8s.io": Strategy(
        disabled=tuple(("spec", "spec", *path) for path in _CLAIM_DISABLED)
    ),
    "resourceslices.resource.k8s.io": Strategy(counts=(_SPEC,), numbered=True, disabled=_SLICE_DISABLED),
}


def strategy_of(storage: str) -> Strategy:
    """Return the strategy of a kind by its name in the store."""
    return STRATEGIES.get(storage, DEFAULT)
