"""What clients ask for and the server keeps without acting on it, for the reader of the results to know."""

from __future__ import annotations

from batkube.cluster.store import ADDED, Batch, Store
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.instants import Instant

_GROUP = "admissionregistration.k8s.io"
_WEBHOOKS = FidelityNote("admission", "a webhook was stored and not called")
_SERVERS = FidelityNote("api", "an aggregated API server was registered and not asked")
_TRAFFIC = FidelityNote("api", "what says who may reach pods was stored and has no effect: traffic is not modelled")

_NOTES = {
    f"mutatingwebhookconfigurations.{_GROUP}": _WEBHOOKS,
    f"validatingwebhookconfigurations.{_GROUP}": _WEBHOOKS,
    "apiservices.apiregistration.k8s.io": _SERVERS,
    "ingresses.networking.k8s.io": _TRAFFIC,
    "networkpolicies.networking.k8s.io": _TRAFFIC,
}


def note_unmodelled(store: Store, notes: FidelityNotes, *, webhooks: bool) -> None:
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
        if note is not _WEBHOOKS or not webhooks:
            store.listen(kind, hear)
