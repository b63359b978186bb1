"""Fidelity notes about features of a definition that are not modelled."""

from __future__ import annotations

from collections.abc import Iterable

from batkube.api.custom.instances.custom_kind import CustomKind
from batkube.api.custom.serving.conversion_webhooks import is_converted_by_webhook
from batkube.cluster.store import KubeObject
from batkube.kernel.fidelity import FidelityNote, FidelityNotes

_SUBJECT = "custom kinds"
_UNSUPPORTED_RULE = FidelityNote(_SUBJECT, "a CEL rule is beyond our interpreter and was not checked")
_WEBHOOK_NOT_CALLED = FidelityNote(
    _SUBJECT, "a conversion webhook was not called; versions were converted by name only"
)


def note_unsupported_features(
    definition: KubeObject, kinds: Iterable[CustomKind], notes: FidelityNotes, *, webhooks: bool
) -> None:
    """Record the features of a definition that have no effect; `webhooks` says whether webhooks are called."""
    name = definition["metadata"]["name"]
    if not webhooks and is_converted_by_webhook(definition):
        notes.add(_WEBHOOK_NOT_CALLED, name)
    for kind in kinds:
        for rule in kind.rules.unsupported if kind.rules is not None else ():
            notes.add(_UNSUPPORTED_RULE, f"{name}: {rule}")
