"""What a definition asks for and is not modelled here, for the reader of a run's results to know."""

from __future__ import annotations

from collections.abc import Iterable

from batkube.api.custom.instances import CustomKind
from batkube.cluster.store import KubeObject
from batkube.kernel.fidelity import FidelityNote, FidelityNotes

_SUBJECT = "custom kinds"
_RULE = FidelityNote(_SUBJECT, "a CEL rule is beyond our interpreter and was not checked")
_WEBHOOK = FidelityNote(_SUBJECT, "a conversion webhook was not called; versions were converted by name only")


def note_unmodelled(definition: KubeObject, kinds: Iterable[CustomKind], notes: FidelityNotes) -> None:
    """Note what of a definition has no effect."""
    name = definition["metadata"]["name"]
    if (definition["spec"].get("conversion") or {}).get("strategy") == "Webhook":
        notes.add(_WEBHOOK, name)
    for kind in kinds:
        for rule in kind.rules.unsupported if kind.rules is not None else ():
            notes.add(_RULE, f"{name}: {rule}")
