"""Match policies: which of the vertices that fit are taken.

Each vertex that fits has a score, and the highest or lowest scores are taken: high or low ids.
*Node-centric* policies add a term for the node to all scores inside it, far greater than any id, so
that one node is filled before the next. *Node-exclusive* policies give a job the whole of every
node it uses. *First* policies stop as soon as they have enough. Imitates flux-sched
resource/policies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from batkube.graph.resources import ResourceGraph
from batkube.graph.traversal.std_sort import sorted_as_std_sort
from batkube.kernel.errors import InputError

#: The minimum score of a vertex that fits (flux-sched: MATCH_MET in resource/policies/base/matcher.hpp).
MET = 1
_NODE_FACTOR = 10_000
#: The class of vertices without a valid `perf_class`, and the maximum of the classes.
_WORST_CLASS = 9999

_POLICIES = {
    "first": "policy=high node_centric=true stop_on_1_matches=true",
    "firstnodex": "policy=high node_centric=true node_exclusive=true stop_on_1_matches=true",
    "high": "policy=high",
    "low": "policy=low",
    "lonode": "policy=low node_centric=true",
    "hinode": "policy=high node_centric=true",
    "lonodex": "policy=low node_centric=true node_exclusive=true",
    "hinodex": "policy=high node_centric=true node_exclusive=true",
}
POLICY_NAMES = (*_POLICIES, "locality", "variation")
_OPTIONS = ("policy", "node_centric", "node_exclusive", "stop_on_1_matches")


class Member(NamedTuple):
    """A vertex of a candidate: the edge to it, the units taken, and what was fixed inside it."""

    edge: int
    units: int
    is_exclusive: bool
    inside: tuple[Member, ...]


class Candidate(NamedTuple):
    """A vertex that fits, or the bundle of vertices of a slot."""

    score: int
    units: int
    members: tuple[Member, ...]


Ordering = Callable[[Sequence[Candidate]], list[Candidate]]


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreOrder:
    """Orders by score: ascending if `sign` is 1, descending if it is -1."""

    sign: int

    def __call__(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates in this order."""
        return [candidates[i] for i in sorted_as_std_sort([self.sign * candidate.score for candidate in candidates])]


_HIGH_FIRST, _LOW_FIRST = ScoreOrder(-1), ScoreOrder(1)


def _higher_runs_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Order candidates by their run of consecutive scores, the run with the highest start first."""
    starts: dict[int, int] = {}
    for score in sorted({candidate.score for candidate in candidates}):
        starts[score] = starts.get(score - 1, score)
    return [candidates[i] for i in sorted_as_std_sort([-starts[candidate.score] for candidate in candidates])]


@dataclasses.dataclass(frozen=True)
class MatchPolicy:
    """How scores are computed and candidates ordered: at the top, in vertices and in slots."""

    name: str
    order_top: Ordering
    order_inside: ScoreOrder
    order_slots: ScoreOrder
    is_node_centric: bool = False
    is_node_exclusive: bool = False
    stops_early: bool = False
    by_class: bool = False

    def score(self, graph: ResourceGraph, vertex: int, bonus: int) -> int:
        """Return the score of a vertex. `bonus` is the term of the nodes above it."""
        if self.by_class:
            return MET + _perf_class(graph.properties.get(vertex, {}).get("perf_class", ""))
        return MET + bonus + graph.id[vertex] + 1

    def bonus_inside(self, graph: ResourceGraph, vertex: int) -> int:
        """Return the term that a vertex adds to all scores inside it."""
        if not self.is_node_centric or graph.type[vertex] != "node":
            return 0
        return (graph.id[vertex] + 2) * _NODE_FACTOR + abs(graph.uniq_id[vertex] % _NODE_FACTOR - 1)


def _perf_class(text: str) -> int:
    """Return the class that a property names, parsed like C's strtol; the worst class if invalid."""
    sign = text.strip()[:1] in ("+", "-")
    digits = "".join(_leading_digits(text.strip()[sign:]))
    number = int(digits) if digits else _WORST_CLASS
    return number if number <= _WORST_CLASS and not text.strip().startswith("-") else _WORST_CLASS


def _leading_digits(text: str) -> Iterable[str]:
    for character in text:
        if not character.isdecimal():
            return
        yield character


def match_policy(name: str) -> MatchPolicy:
    """Return the policy with a name or with options such as `policy=low node_centric=true`.

    Raises InputError.
    """
    if name == "locality":
        return MatchPolicy(name, _higher_runs_first, _HIGH_FIRST, _HIGH_FIRST)
    if name == "variation":
        return MatchPolicy(name, _LOW_FIRST, _LOW_FIRST, _HIGH_FIRST, by_class=True)
    options = _options(name, _POLICIES.get(name, name))
    order = _HIGH_FIRST if options.get("policy") == "high" else _LOW_FIRST
    return MatchPolicy(
        name,
        order,
        order,
        order,
        is_node_centric=options.get("node_centric") == "true",
        is_node_exclusive=options.get("node_exclusive") == "true",
        stops_early=options.get("stop_on_1_matches") == "true",
    )


def _options(name: str, text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    remedy = f"use one of {', '.join(POLICY_NAMES)}, or options such as `policy=low node_centric=true`"
    for part in text.split():
        key, _, value = part.partition("=")
        allowed = ("high", "low") if key == "policy" else ("true", "false")
        if key not in _OPTIONS or value not in allowed:
            raise InputError("the match policy", problem=f"is {name!r}, and {part!r} is unknown", remedy=remedy)
        options[key] = value
    if "policy" not in options:
        raise InputError("the match policy", problem=f"is {name!r}, but lacks policy=high or policy=low", remedy=remedy)
    return options
