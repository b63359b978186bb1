"""Which class objects have that name none, such as claims without a storage class.

Kubernetes: pkg/volume/util/storageclass.go, and the same for ingresses in plugin/pkg/admission/network.
"""

from __future__ import annotations

from batkube.cluster.store import Store

_STORAGE_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_INGRESS_ANNOTATIONS = ("ingressclass.kubernetes.io/is-default-class",)


def default_storage_class(store: Store) -> str:
    """Return the name of the default storage class, "" if there is none."""
    return _default_class(store, "storageclasses.storage.k8s.io", _STORAGE_ANNOTATIONS)


def default_ingress_class(store: Store) -> str:
    """Return the name of the default class of ingresses, "" if there is none."""
    return _default_class(store, "ingressclasses.networking.k8s.io", _INGRESS_ANNOTATIONS)


def _default_class(store: Store, kind: str, marks: tuple[str, ...]) -> str:
    """Return the name of the class marked as the default, the newest and then the first by name; "" if none is."""
    chosen, since = "", ""
    for value, _ in store.entries(kind).values():
        metadata = value["metadata"]
        annotations = metadata.get("annotations") or {}
        if any(annotations.get(mark) == "true" for mark in marks):
            name, created = metadata["name"], metadata["creationTimestamp"]
            if not chosen or created > since or (created == since and name < chosen):
                chosen, since = name, created
    return chosen
