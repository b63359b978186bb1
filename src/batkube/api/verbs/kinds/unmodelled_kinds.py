"""What clients ask for and the server keeps without acting on it, for the reader of the results to know."""

from __future__ import annotations

from batkube.cluster.store import ADDED, Batch, Store
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Instant

_GROUP = "admissionregistration.k8s.io"
_WEBHOOK_NOTE = FidelityNote("admission", "a webhook was stored and not called")
_API_SERVICE_NOTE = FidelityNote("api", "an aggregated API server was registered and not asked")
_TRAFFIC_NOTE = FidelityNote(
    "api", "what says who may reach pods was stored and has no effect: traffic is not modelled"
)

_NOTES = {
    f"mutatingwebhookconfigurations.{_GROUP}": _WEBHOOK_NOTE,
    f"validatingwebhookconfigurations.{_GROUP}": _WEBHOOK_NOTE,
    "apiservices.apiregistration.k8s.io": _API_SERVICE_NOTE,
    "ingresses.networking.k8s.io": _TRAFFIC_NOTE,
    "networkpolicies.networking.k8s.io": _TRAFFIC_NOTE,
}


def note_unmodelled_kinds(store: Store, notes: FidelityNotes, *, webhooks: bool) -> None:
    """Note every object from now on that would act on a real cluster and does not here.

    `webhooks` tells whether admission webhooks are called.
    """

    def hear(batch: Batch, now: Instant) -> None:
        if batch.type is not ADDED:
            return
        for value in batch.objects:
            if batch.kind != "apiservices.apiregistration.k8s.io" or value["spec"].get("service"):
                notes.add(_NOTES[batch.kind], f"{value['kind']} {value['metadata']['name']}")

    for kind, note in _NOTES.items():
        if note is not _WEBHOOK_NOTE or not webhooks:
            store.subscribe(kind, hear)
