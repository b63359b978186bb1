"""Strategies as data: the rules for writes of each kind (Kubernetes: pkg/registry/GROUP/KIND/strategy.go).

The defaults are those of most kinds: neither status nor generation, creation by POST only, and unconditional updates.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

Path = tuple[str, ...]
"""Field names from the root of an object; `*` stands for every item of a list or map."""

#: What happens to the dependents of a deleted object by default (rest.GarbageCollectionPolicy).
BACKGROUND, ORPHAN, UNSUPPORTED = "Background", "Orphan", "Unsupported"

SPEC: Path = ("spec",)
STATUS: Path = ("status",)
METADATA: Path = ("metadata",)
LABELS: Path = ("metadata", "labels")

#: Fields that a write cannot change: the status for the object itself, everything but the status for the status.
PROTECTED_FIELDS: Mapping[str, tuple[Path, ...]] = {"": (STATUS,), "status": (SPEC,)}
#: The same for kinds whose status updates cannot change the metadata either.
PROTECTED_FIELDS_AND_METADATA: Mapping[str, tuple[Path, ...]] = {"": (STATUS,), "status": (SPEC, METADATA)}


class Strategy(msgspec.Struct, frozen=True):
    """The rules for writes of one kind."""

    #: Fields that a write cannot change, by subresource (`""` for the object itself); a create clears them.
    protected_fields: Mapping[str, tuple[Path, ...]] = {}
    #: The fields whose changes increment metadata.generation.
    generation_fields: tuple[Path, ...] = ()
    #: Whether a new object has generation 1; otherwise it keeps the client's value.
    has_generation: bool = False
    #: Whether PUT creates a missing object (AllowCreateOnUpdate).
    allow_create_on_update: bool = False
    #: Whether an update may omit the resourceVersion (AllowUnconditionalUpdate).
    allow_unconditional_update: bool = True
    #: The default deletion propagation to dependents.
    default_propagation: str = BACKGROUND
    #: Fields of features that are disabled in this version of Kubernetes; they are dropped.
    disabled_fields: tuple[Path, ...] = ()


def with_generation(
    *counts: Path, keeps: Mapping[str, tuple[Path, ...]] | None = None, unconditional: bool = True
) -> Strategy:
    """Return the strategy of a kind whose generation starts at 1 and counts changes of `counts`."""
    return Strategy(
        protected_fields={} if keeps is None else keeps,
        generation_fields=counts,
        has_generation=True,
        allow_unconditional_update=unconditional,
    )


WORKLOAD = with_generation(SPEC, keeps=PROTECTED_FIELDS)
ORPHANING_WORKLOAD = Strategy(
    protected_fields=PROTECTED_FIELDS, generation_fields=(SPEC,), has_generation=True, default_propagation=ORPHAN
)
WITH_STATUS = Strategy(protected_fields=PROTECTED_FIELDS)
UPSERT = Strategy(allow_create_on_update=True)
CONDITIONAL_UPSERT = Strategy(allow_create_on_update=True, allow_unconditional_update=False)


DEFAULT = Strategy()
