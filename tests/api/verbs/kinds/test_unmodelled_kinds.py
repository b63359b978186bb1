"""Objects without an effect in the simulation are noted."""

from __future__ import annotations

from batkube.api.verbs.kinds.unmodelled_kinds import note_unmodelled_kinds
from batkube.cluster.store import Key, Store
from batkube.kernel.fidelity import FidelityNotes
from batkube.kernel.instants import START

WEBHOOKS = "validatingwebhookconfigurations.admissionregistration.k8s.io"
SERVERS = "apiservices.apiregistration.k8s.io"


def test_a_webhook_that_is_not_called_is_noted_once_with_its_name() -> None:
    store, notes = Store(), FidelityNotes()
    note_unmodelled_kinds(store, notes, webhooks=False)

    store.create(WEBHOOKS, [Key("guard")], [{"kind": "Guard", "metadata": {"name": "guard"}}], START)
    store.replace(WEBHOOKS, [Key("guard")], [{"kind": "Guard", "metadata": {"name": "guard", "labels": {}}}], START)

    (row,) = notes.rows()
    assert (row["subject"], row["example"], row["count"]) == ("admission", "Guard guard", 1)


def test_only_an_api_service_with_a_service_is_noted() -> None:
    store, notes = Store(), FidelityNotes()
    note_unmodelled_kinds(store, notes, webhooks=False)

    store.create(SERVERS, [Key("v1.apps")], [{"metadata": {"name": "v1.apps"}, "spec": {}}], START)
    assert notes.rows() == []

    elsewhere = {"kind": "APIService", "metadata": {"name": "v1.x"}, "spec": {"service": {"name": "x"}}}
    store.create(SERVERS, [Key("v1.x")], [elsewhere], START)
    assert [row["example"] for row in notes.rows()] == ["APIService v1.x"]
