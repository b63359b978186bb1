"""The actions that a live page of a served cluster can request."""

from __future__ import annotations

import msgspec


class ActionRequest(msgspec.Struct, forbid_unknown_fields=True, tag_field="action", frozen=True):
    """An action; its tag is the key `action`."""


class Apply(ActionRequest, tag="apply", frozen=True):
    """Apply the objects of a manifest, or create copies of its objects if they have a `generateName`."""

    manifest: str
    copies: int = 1


class Cordon(ActionRequest, tag="cordon", frozen=True):
    """Mark a node unschedulable."""

    node: str


class Uncordon(ActionRequest, tag="uncordon", frozen=True):
    """Mark a node schedulable."""

    node: str


class Drain(ActionRequest, tag="drain", frozen=True):
    """Cordon a node and evict its pods."""

    node: str


class Fail(ActionRequest, tag="fail", frozen=True):
    """Let a node fail."""

    node: str


class Restore(ActionRequest, tag="restore", frozen=True):
    """Let a failed node return."""

    node: str


class Scale(ActionRequest, tag="scale", frozen=True):
    """Set the number of replicas of an object."""

    kind: str
    namespace: str
    name: str
    replicas: int


class SetLoad(ActionRequest, tag="load", frozen=True):
    """Set the load of a rule: a quantity of cores."""

    rule: str
    cpu: str


AnyAction = Apply | Cordon | Uncordon | Drain | Fail | Restore | Scale | SetLoad
