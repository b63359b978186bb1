"""Fidelity notes for objects that the server stores but that have no effect in the simulation."""

from __future__ import annotations

from batkube.cluster.store import ADDED, Batch, Store
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Instant

_GROUP = "admissionregistration.k8s.io"
_WEBHOOK_NOTE = FidelityNote("admission", "a webhook configuration was stored, but webhooks are not called")
_API_SERVICE_NOTE = FidelityNote("api", "an APIService was stored, but aggregated API servers are not contacted")
_TRAFFIC_NOTE = FidelityNote(
    "api", "an Ingress or NetworkPolicy was stored but has no effect: network traffic is not modelled"
)

_NOTES = {
    f"mutatingwebhookconfigurations.{_GROUP}": _WEBHOOK_NOTE,
    f"validatingwebhookconfigurations.{_GROUP}": _WEBHOOK_NOTE,
    "apiservices.apiregistration.k8s.io": _API_SERVICE_NOTE,
    "ingresses.networking.k8s.io": _TRAFFIC_NOTE,
    "networkpolicies.networking.k8s.io": _TRAFFIC_NOTE,
}


def note_unmodelled_kinds(store: Store, notes: FidelityNotes, *, webhooks: bool) -> None:
    """Add a fidelity note for every new object that would have an effect in a real cluster but has none here.

    `webhooks`: whether admission webhooks are called.
    """

    def on_change(batch: Batch, now: Instant) -> None:
        if batch.type is not ADDED:
            return
        for value in batch.objects:
            if batch.kind != "apiservices.apiregistration.k8s.io" or value["spec"].get("service"):
                notes.add(_NOTES[batch.kind], f"{value['kind']} {value['metadata']['name']}")

    for kind, note in _NOTES.items():
        if note is not _WEBHOOK_NOTE or not webhooks:
            store.subscribe(kind, on_change)
