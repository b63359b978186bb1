"""Match policies: which of the vertices that would do are taken.

A vertex that does gets a score, and the best ones are taken: those with high ids or those with low ids first. *Node
centric* policies add to every score inside a node a term for the node, far greater than any id, so that one node is
filled before the next. *Node exclusive* ones give a job all of every node it touches. *First* ones stop looking as soon
as there is enough. Fluxion: resource/policies.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from batkube.graph.resources import ResourceGraph
from batkube.graph.traversal.std_sort import sorted_as_std_sort
from batkube.kernel.errors import InputError

#: What a vertex that fits scores at least.
MET = 1
_NODE_FACTOR = 10_000
#: The class of vertices whose `perf_class` says none, and the last one there is.
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
    """A vertex that a candidate would take: through which edge, how much of it, and what was fixed inside of it."""

    edge: int
    units: int
    is_exclusive: bool
    inside: tuple[Member, ...]


class Candidate(NamedTuple):
    """What would do: one vertex, or the bundle of vertices of a slot."""

    score: int
    units: int
    members: tuple[Member, ...]


Ordering = Callable[[Sequence[Candidate]], list[Candidate]]


@dataclasses.dataclass(frozen=True, slots=True)
class ScoreOrder:
    """The order of scores: the least first if `sign` is 1, the greatest if it is -1."""

    sign: int

    def __call__(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return candidates in this order."""
        return [candidates[i] for i in sorted_as_std_sort([self.sign * candidate.score for candidate in candidates])]


_HIGH_FIRST, _LOW_FIRST = ScoreOrder(-1), ScoreOrder(1)


def _higher_runs_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Order candidates by the run of consecutive scores they belong to, the one that starts highest first."""
    starts: dict[int, int] = {}
    for score in sorted({candidate.score for candidate in candidates}):
        starts[score] = starts.get(score - 1, score)
    return [candidates[i] for i in sorted_as_std_sort([-starts[candidate.score] for candidate in candidates])]


@dataclasses.dataclass(frozen=True)
class MatchPolicy:
    """How scores are made and candidates ordered: at the top, inside of vertices, and inside of slots."""

    name: str
    order_top: Ordering
    order_inside: ScoreOrder
    order_slots: ScoreOrder
    is_node_centric: bool = False
    is_node_exclusive: bool = False
    stops_early: bool = False
    by_class: bool = False

    def score(self, graph: ResourceGraph, vertex: int, bonus: int) -> int:
        """Return a vertex's score; `bonus` is the term for the nodes around it."""
        if self.by_class:
            return MET + _perf_class(graph.properties.get(vertex, {}).get("perf_class", ""))
        return MET + bonus + graph.id[vertex] + 1

    def bonus_inside(self, graph: ResourceGraph, vertex: int) -> int:
        """Return what every score inside of a vertex gets on top."""
        if not self.is_node_centric or graph.type[vertex] != "node":
            return 0
        return (graph.id[vertex] + 2) * _NODE_FACTOR + abs(graph.uniq_id[vertex] % _NODE_FACTOR - 1)


def _perf_class(text: str) -> int:
    """Return the class a property says, read as C's strtol does; the worst for what is none."""
    sign = text.strip()[:1] in ("+", "-")
    digits = "".join(_leading_digits(text.strip()[sign:]))
    number = int(digits) if digits else _WORST_CLASS
    return number if number <= _WORST_CLASS and not text.strip().startswith("-") else _WORST_CLASS


def _leading_digits(text: str) -> Iterable[str]:
    for letter in text:
        if not letter.isdecimal():
            return
        yield letter


def match_policy(name: str) -> MatchPolicy:
    """Return the policy with a name, or the one that options like `policy=low node_centric=true` describe."""
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
    remedy = f"it is one of {', '.join(POLICY_NAMES)}, or options like `policy=low node_centric=true`"
    for part in text.split():
        key, _, value = part.partition("=")
        allowed = ("high", "low") if key == "policy" else ("true", "false")
        if key not in _OPTIONS or value not in allowed:
            raise InputError("the match policy", problem=f"is {name!r}, of which {part!r} is unknown", remedy=remedy)
        options[key] = value
    if "policy" not in options:
        raise InputError("the match policy", problem=f"is {name!r}, without policy=high or policy=low", remedy=remedy)
    return options
