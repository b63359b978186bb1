"""Expressions of policies and of webhooks' conditions: what they see, and how they are evaluated.

Kubernetes: apiserver/pkg/admission/plugin/cel and plugin/webhook/matchconditions.
"""

from __future__ import annotations

from typing import Any

from batkube.api.admission.attempts import Attempt, kind_named, resource_named
from batkube.api.cel.programs import CelProgram
from batkube.api.cel.trees import SourceError, Unsupported
from batkube.api.cel.types import DYN
from batkube.cluster.store import Key, KubeObject
from batkube.kernel.fidelity import FidelityNote, FidelityNotes

_SEEN = ("object", "oldObject", "request", "params", "namespaceObject", "variables")
_UNKNOWN = FidelityNote("api", "an expression of an admission policy cannot be evaluated, and is left out")


class Expressions:
    """The expressions of all policies and webhooks, each read once."""

    def __init__(self, notes: FidelityNotes) -> None:
        self._notes = notes
        #: Expressions that were read before; None for those that cannot be evaluated.
        self._programs: dict[str, CelProgram | None] = {}

    def value(self, text: str, seen: dict[str, Any]) -> Any:  # noqa: ANN401 - any value of CEL
        """Return the value of an expression; True if it cannot be evaluated here, which is noted."""
        if text not in self._programs:
            try:
                self._programs[text] = CelProgram(text, dict.fromkeys(_SEEN, DYN))
            except (SourceError, Unsupported):
                self._programs[text] = None
        program = self._programs[text]
        if program is None:
            self._notes.add(_UNKNOWN, example=text)
            return True
        return program(seen)


def seen_by_expressions(attempt: Attempt, params: KubeObject | None = None) -> dict[str, Any]:
    """Return what expressions see."""
    kind, place = kind_named(attempt.resource), resource_named(attempt.resource)
    namespace = attempt.store.get("namespaces", Key(attempt.namespace)) if attempt.namespace else None
    user = attempt.user
    request = {
        "kind": kind,
        "resource": place,
        "requestKind": kind,
        "requestResource": place,
        "subResource": attempt.subresource,
        "requestSubResource": attempt.subresource,
        "name": attempt.name or (attempt.value.get("metadata") or {}).get("name", ""),
        "namespace": attempt.namespace,
        "operation": attempt.operation,
        "dryRun": attempt.dry_run,
        "userInfo": {"username": user.name, "uid": user.uid, "groups": list(user.groups)} if user is not None else {},
    }
    return {
        "object": None if attempt.deletes else attempt.value,
        "oldObject": attempt.old,
        "request": request,
        "params": params,
        "namespaceObject": namespace,
    }
