"""Default classes: the StorageClass and IngressClass of objects that name none.

Kubernetes: pkg/volume/util/storageclass.go (GetDefaultClass), and for ingresses
plugin/pkg/admission/network/defaultingressclass.
"""

from __future__ import annotations

from batkube.cluster.store import Store

_STORAGE_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_INGRESS_ANNOTATIONS = ("ingressclass.kubernetes.io/is-default-class",)


def default_storage_class(store: Store) -> str:
    """Return the name of the default StorageClass, or ""."""
    return _default_class(store, "storageclasses.storage.k8s.io", _STORAGE_ANNOTATIONS)


def default_ingress_class(store: Store) -> str:
    """Return the name of the default IngressClass, or ""."""
    return _default_class(store, "ingressclasses.networking.k8s.io", _INGRESS_ANNOTATIONS)


def _default_class(store: Store, kind: str, annotation_keys: tuple[str, ...]) -> str:
    """Return the name of the class marked as default, or ""; of several, the newest, then the first by name."""
    chosen, since = "", ""
    for value, _ in store.entries(kind).values():
        metadata = value["metadata"]
        annotations = metadata.get("annotations") or {}
        if any(annotations.get(key) == "true" for key in annotation_keys):
            name, created = metadata["name"], metadata["creationTimestamp"]
            if not chosen or created > since or (created == since and name < chosen):
                chosen, since = name, created
    return chosen
