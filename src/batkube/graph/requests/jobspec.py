"""Canonical jobspecs: a job's request as a tree of resources (RFC 14).

    version: 9999
    resources:
      - type: node
        count: 2
        with:
          - {type: slot, count: 1, label: default, with: [{type: core, count: 4}]}
    tasks:
      - {command: [app], slot: default, count: {per_slot: 1}}
    attributes: {system: {duration: 3600}}

A *slot* is not a vertex but a bundle of resources for a task, all of them exclusive. A count is a
number or a range: `{min: 2, max: 16, operator: "*", operand: 2}` requests as many as possible of 2,
4, 8 and 16.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

from batkube.graph.requests.constraints import Constraint, parse_constraint
from batkube.graph.requests.yaml_nodes import SpecNode, read_spec

SLOT = "slot"
XOR_SLOT = "xor_slot"

_UNLIMITED = 2**32 - 1
_TOP_KEYS = ("version", "resources", "tasks", "attributes")
_RESOURCE_KEYS = ("type", "count", "unit", "exclusive", "with", "label", "id")
_LEAST_OPERANDS = {"+": 1, "*": 2, "^": 2}


@dataclasses.dataclass(frozen=True, slots=True)
class CountRange:
    """The number of vertices that a request takes: from `least` to `most`, in steps."""

    least: int
    most: int
    operator: str = "+"
    operand: int = 1

    def amount(self, available: int) -> int:
        """Return the number to take of the available ones; zero if there are too few."""
        if self.least > self.most or self.least > available:
            return 0
        bound = min(available, self.most)
        if self.operator == "+":
            return bound - (bound - self.least) % self.operand
        return self._largest(bound)

    @property
    def effective_most(self) -> int:
        """The number to take of unlimited ones."""
        return self.amount(_UNLIMITED)

    def _largest(self, bound: int) -> int:
        """Return the largest member of the series of products or powers that is at most `bound`."""
        amount = next_amount = self.least
        while 0 < next_amount <= bound:
            amount = next_amount
            next_amount = next_amount * self.operand if self.operator == "*" else next_amount**self.operand
            if next_amount == amount:
                break
        return amount


@dataclasses.dataclass(frozen=True, slots=True)
class VertexRequest:
    """A request for vertices of a type, and the requests inside each."""

    type: str
    count: CountRange
    inside: tuple[VertexRequest, ...] = ()
    #: None if unset.
    exclusive: bool | None = None
    label: str = ""
    #: The place in the jobspec, for error messages.
    place: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Jobspec:
    """The request of a job."""

    resources: tuple[VertexRequest, ...]
    #: In whole seconds; zero means until the end of the graph's time.
    duration: int = 0
    queue: str = ""
    constraint: Constraint | None = None
    source: str = "jobspec"


def parse_jobspec(path: Path, content: bytes | str) -> Jobspec:
    """Return the request in a jobspec file. Raises InputError with the place."""
    root = read_spec(path, content)
    top = root.mapping("the jobspec")
    for key in _TOP_KEYS:
        if key not in top:
            raise root.error(f"the key {key!r} is missing", "add it to the jobspec")
    for key in top:
        if key not in _TOP_KEYS:
            raise top[key].error("is an unknown key", f"a jobspec has only the keys {', '.join(_TOP_KEYS)}")
    top["version"].integer("the version", at_least=1, at_most=9999)
    resources = tuple(_resource(node) for node in top["resources"].sequence("resources"))
    if not resources:
        raise top["resources"].error("is empty", "request at least one resource")
    for task in top["tasks"].sequence("tasks"):
        _check_task(task)
    return dataclasses.replace(_attributes(top["attributes"]), resources=resources, source=str(path))


def _resource(node: SpecNode) -> VertexRequest:
    entries = node.mapping("a resource")
    for key in ("type", "count"):
        if key not in entries:
            raise node.error(f"the key {key!r} is missing", "a resource has a type and a count")
    for key, value in entries.items():
        if key not in _RESOURCE_KEYS:
            raise value.error("is an unknown key", f"a resource has the keys {', '.join(_RESOURCE_KEYS)}")
        if key not in ("count", "with"):
            value.string(f"the value of {key}")
    type = entries["type"].string("the type")
    if type == SLOT and "label" not in entries:
        raise node.error("the slot has no label", "add the label that tasks refer to")
    inside = entries["with"].sequence("the value of with") if "with" in entries else []
    return VertexRequest(
        type=type,
        count=_count(entries["count"]),
        inside=tuple(_resource(child) for child in inside),
        exclusive=_exclusive(entries["exclusive"]) if "exclusive" in entries else None,
        label=entries["label"].string("the label") if "label" in entries else "",
        place=node.place,
    )


def _exclusive(node: SpecNode) -> bool:
    text = node.string("exclusive")
    if text not in ("true", "false"):
        raise node.error(f"exclusive is {text!r}", "use true or false")
    return text == "true"


def _count(node: SpecNode) -> CountRange:
    if node.is_scalar:
        count = node.integer("the count")
        return CountRange(count, count)
    entries = node.mapping("the count")
    if "min" not in entries:
        raise node.error("the key 'min' is missing", "add it to the range")
    least = entries["min"].integer("min", at_least=1)
    rest = [key for key in ("max", "operator", "operand") if key in entries]
    if not rest:
        return CountRange(least, _UNLIMITED)
    if len(rest) < 3:
        raise node.error("has only some of the keys max, operator and operand", "use all three or none")
    most = entries["max"].integer("max", at_least=least)
    operator = entries["operator"].string("the operator")
    if operator not in _LEAST_OPERANDS:
        raise entries["operator"].error(f"the operator {operator!r} is unknown", 'use "+", "*" or "^"')
    operand = entries["operand"].integer("the operand", at_least=_LEAST_OPERANDS[operator], at_most=2**31 - 1)
    if operator == "^" and least < 2:
        raise entries["min"].error("min is 1, and all powers of 1 are 1", "use at least 2 with the operator ^")
    return CountRange(least, most, operator, operand)


def _check_task(node: SpecNode) -> None:
    """Check a task: which command runs in which slot. The matcher does not use it."""
    entries = node.mapping("a task")
    for key in ("command", "slot", "count"):
        if key not in entries:
            raise node.error(f"the key {key!r} is missing", "a task has a command, a slot and a count")
    for word in entries["command"].sequence("the command"):
        word.string("a word of the command")
    entries["slot"].string("the slot")
    count = entries["count"].mapping("the count of a task")
    if len(count) != 1:
        raise entries["count"].error("does not have exactly one key", "use per_slot, per_resource or total")
    for value in count.values():
        if not value.is_scalar:
            value.mapping("the count of a task")
    if len(entries) > 5:
        remedy = "use only command, slot, count, distribution and attributes"
        raise node.error("the task has more than five keys", remedy)
    if "distribution" in entries:
        entries["distribution"].string("the distribution")
    if "attributes" in entries:
        entries["attributes"].mapping("the attributes of a task")


def _attributes(node: SpecNode) -> Jobspec:
    """Return the attributes as a jobspec without resources."""
    if node.is_null:
        return Jobspec(())
    entries = node.mapping("attributes")
    for key, value in entries.items():
        if key not in ("user", "system"):
            raise value.error("is an unknown key", "attributes has the keys user and system")
    system = entries["system"].mapping("system") if "system" in entries and not entries["system"].is_null else {}
    return Jobspec(
        (),
        duration=_duration(system["duration"]) if "duration" in system else 0,
        queue=system["queue"].string("the queue") if "queue" in system else "",
        constraint=parse_constraint(system["constraints"]) if "constraints" in system else None,
    )


def _duration(node: SpecNode) -> int:
    """Return a duration in whole seconds, rounded up.

    Imitates `jobmeta_t::build` (flux-sched resource/traversers/dfu_impl.hpp).
    """
    text = node.string("the duration")
    try:
        seconds = float(text)
    except ValueError:
        raise node.error(f"the duration is {text!r}", "use a number of seconds") from None
    if not 0 <= seconds < 2**62:
        raise node.error(f"the duration is {text}", "use a number of seconds, zero for no limit")
    return math.ceil(seconds)
