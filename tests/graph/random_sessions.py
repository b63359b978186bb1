"""Random graphs, jobspecs and commands for a comparison with Fluxion's resource-query."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

POLICIES = [
    *("high", "low", "hinode", "lonode", "hinodex", "lonodex", "first", "firstnodex", "locality"),
    *("policy=low node_centric=true", "policy=high stop_on_1_matches=true"),
    "policy=high node_centric=true node_exclusive=true",
]
FORMATS = ["simple", "pretty_simple", "jgf", "jgf_shorthand", "rlite", "rv1", "rv1_nosched", "rv1_shorthand"]
OPERATIONS = [
    *4 * ["allocate"],
    *5 * ["allocate_orelse_reserve"],
    *("allocate_with_satisfiability", "satisfiability", "without_allocating", "without_allocating_future"),
]
FILTERS = ["ALL:core", "ALL:node", "ALL:core,ALL:gpu", "ALL:core,cluster:node", "ALL:core,ALL:memory", "cluster:core"]
CRITERIA = [
    *("status=up", "status=down", "sched-now=allocated", "sched-now=free", "sched-future=reserved"),
    *("sched-future=free", "names=node[0-1]", "property=a", "jobid-alloc=2", "jobid-tag=1", "jobid-reserved=3"),
    "status=up or (sched-now=allocated and property=b)",
]
CONSTRAINTS: list[dict[str, Any]] = [
    {"properties": ["a"]},
    {"not": [{"properties": ["a"]}]},
    {"or": [{"properties": ["b"]}, {"ranks": ["0-1"]}]},
    {"hostlist": ["node[0-2]"]},
]


class SessionMaker:
    """Generates a graph, jobspecs and commands from a seed, the first two as files in a folder."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._draw = random.Random(seed)
        self._vertices: list[dict[str, Any]] = []
        self._edges: list[dict[str, str]] = []

    def session(self) -> tuple[list[str], str]:
        """Return the options and the commands."""
        self._make_graph()
        graph = self._folder / "graph.json"
        graph.write_text(json.dumps({"graph": {"nodes": self._vertices, "edges": self._edges}}), encoding="utf-8")
        jobspecs = []
        for number in range(self._draw.randint(1, 5)):
            jobspecs.append(self._folder / f"job{number}.yaml")
            jobspecs[-1].write_text(json.dumps(self._jobspec()), encoding="utf-8")
        options = ["-L", str(graph), "-f", "jgf", "-P", self._draw.choice(POLICIES), "-F", self._draw.choice(FORMATS)]
        if self._draw.random() < 0.5:
            options += ["-p", self._draw.choice(FILTERS)]
        commands = [self._command(jobspecs) for _ in range(self._draw.randint(3, 25))]
        return options, "\n".join([*commands, "quit", ""])

    def _make_graph(self) -> None:
        """Generate nodes with cores, GPUs and memory, with or without racks and sockets."""
        draw = self._draw
        racks, sockets = draw.choice([0, 1, 2]), draw.choice([0, 0, 1, 2])
        leaves = {"core": draw.choice([1, 2, 4]), "gpu": draw.choice([0, 1, 2]), "memory": draw.choice([0, 1, 2])}
        memory_size = draw.choice([1, 2, 1024])
        rank = 0
        root = self._add("cluster", 0, None)
        for rack in [self._add("rack", number, root) for number in range(racks)] or [root]:
            for _ in range(draw.randint(1, 4)):
                properties = {draw.choice("abc"): ""} if draw.random() < 0.3 else {}
                node = self._add("node", rank, rack, rank=rank, properties=properties)
                counts = dict.fromkeys(leaves, 0)
                for parent in [self._add("socket", number, node, rank=rank) for number in range(sockets)] or [node]:
                    for type, count in leaves.items():
                        for _ in range(count):
                            size = memory_size if type == "memory" else 1
                            self._add(type, counts[type], parent, rank=rank, size=size)
                            counts[type] += 1
                rank += 1

    def _add(self, type: str, id: int, parent: int | None, rank: int = -1, **metadata: object) -> int:
        number = len(self._vertices)
        parent_path = "" if parent is None else self._vertices[parent]["metadata"]["paths"]["containment"]
        required = {"type": type, "id": id, "rank": rank, "paths": {"containment": f"{parent_path}/{type}{id}"}}
        optional = {key: value for key, value in metadata.items() if value}
        self._vertices.append({"id": str(number), "metadata": {**required, **optional}})
        if parent is not None:
            self._edges.append({"source": str(parent), "target": str(number)})
        return number

    def _jobspec(self) -> dict[str, Any]:
        """Return a jobspec for some of the levels of the graph, with a slot at one of them."""
        draw = self._draw
        types = {vertex["metadata"]["type"] for vertex in self._vertices}
        levels = [type for type in ("rack", "node", "socket") if type in types]
        levels = levels[draw.randint(0, len(levels)) :]
        leaves = [type for type in ("core", "gpu", "memory") if type in types]
        inside = [self._resource(type) for type in draw.sample(leaves, draw.randint(1, len(leaves)))]
        slot_at = draw.randint(0, len(levels))
        for place in range(len(levels), -1, -1):
            if place == slot_at:
                inside = [{"type": "slot", "label": "s", "count": self._count(), "with": inside}]
            if place:
                inside = [{**self._resource(levels[place - 1]), "with": inside}]
        system: dict[str, Any] = {"duration": draw.choice([10, 60, 100, 3600, 0])}
        if draw.random() < 0.15:
            system["constraints"] = draw.choice(CONSTRAINTS)
        tasks = [{"command": ["app"], "slot": "s", "count": {"per_slot": 1}}]
        return {"version": 9999, "resources": inside, "tasks": tasks, "attributes": {"system": system}}

    def _resource(self, type: str) -> dict[str, Any]:
        exclusive = {"exclusive": True} if self._draw.random() < 0.12 else {}
        return {"type": type, "count": self._count(), **exclusive}

    def _count(self) -> int | dict[str, Any]:
        draw = self._draw
        if draw.random() < 0.8:
            return draw.choice([1, 1, 1, 2, 2, 3, 4])
        least, operator = draw.choice([1, 2, 3]), draw.choice("+*^")
        return {"min": least, "max": least + draw.choice([0, 1, 2, 6]), "operator": operator, "operand": 2}

    def _command(self, jobspecs: list[Path]) -> str:
        draw = self._draw
        place = draw.choice(self._vertices)["metadata"]["paths"]["containment"]
        kind = draw.random()
        if kind < 0.7:
            return f"match {draw.choice(OPERATIONS)} {draw.choice(jobspecs)}"
        if kind < 0.82:
            return f"cancel {draw.randint(1, 8)} stats"
        if kind < 0.88:
            return f"set-status {place} {draw.choice(['up', 'down'])}"
        if kind < 0.92:
            return f"set-property {place} {draw.choice('abcd')}={draw.randint(0, 9)}"
        return f"find {draw.choice(CRITERIA)}"
