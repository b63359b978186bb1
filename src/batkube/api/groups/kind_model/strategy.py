"""What a kind adds to writing, as data: the strategies of Kubernetes (pkg/registry/GROUP/KIND/strategy.go).

A kind that does not say has neither status nor generation, may be created by POST only, and is updated whatever
version the client has seen: what most kinds do.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

Path = tuple[str, ...]
"""Fields from the top of an object down; `*` stands for every element of a list or map."""

#: What happens to the dependents of a deleted object when the request does not say (rest.GarbageCollectionPolicy).
BACKGROUND, ORPHAN, UNSUPPORTED = "Background", "Orphan", "Unsupported"

SPEC: Path = ("spec",)
STATUS: Path = ("status",)
METADATA: Path = ("metadata",)
LABELS: Path = ("metadata", "labels")

#: What writes may not change: those to the object itself nothing of its status, those to the status nothing else.
PROTECTED_FIELDS: Mapping[str, tuple[Path, ...]] = {"": (STATUS,), "status": (SPEC,)}
#: The same for kinds whose status writes leave the metadata alone as well.
PROTECTED_FIELDS_AND_METADATA: Mapping[str, tuple[Path, ...]] = {"": (STATUS,), "status": (SPEC, METADATA)}


class Strategy(msgspec.Struct, frozen=True):
    """How writes to objects of one kind differ from those to others."""

    #: What a write may not change, by sub-resource (`""` for the object itself); on creation, what is cleared.
    protected_fields: Mapping[str, tuple[Path, ...]] = {}
    #: Changes to these are counted in metadata.generation.
    generation_fields: tuple[Path, ...] = ()
    #: Whether a new object has generation 1; otherwise it has what the client wrote.
    has_generation: bool = False
    #: A PUT to a name that does not exist creates it (AllowCreateOnUpdate).
    allow_create_on_update: bool = False
    #: An update need not tell the version it was made from (AllowUnconditionalUpdate).
    allow_unconditional_update: bool = True
    #: What becomes of dependents.
    default_propagation: str = BACKGROUND
    #: Fields of features that are off in this version of Kubernetes; dropped.
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
