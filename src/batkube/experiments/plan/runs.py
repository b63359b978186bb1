"""The plan: each point of the grid as a run with a scenario, a name and a folder.

A run's name starts with its labels and ends in a hash of all its inputs: the scenario, the content of its input files
and of the files that these refer to, and the programs. Paths of files do not count, so an experiment may be moved.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from batkube.execution.latencies.delays import read_latencies
from batkube.experiments.description.experiment_file import Experiment
from batkube.experiments.plan.grid import Point, points
from batkube.experiments.plan.grid_selection import GridSelection, select_points
from batkube.kernel.errors import InputError
from batkube.outputs.files.manifest import fingerprint
from batkube.platforms.reader import read_platform
from batkube.policies.registry.catalogue import load_policy
from batkube.programs.program import Builder
from batkube.scenarios.files import scenario_values
from batkube.scenarios.keys import REQUIRED, make_scenario
from batkube.scenarios.relocation import relocate
from batkube.scenarios.scenario import POLICY_PREFIX, TIME_LIMIT_KEY, Scenario
from batkube.schedulers.catalogue import Catalogue
from batkube.simulation.preparation.input_files import input_files_of
from batkube.simulation.preparation.named_code import Confirmation, code_of_scenario, trust_all
from batkube.workloads.container_rules.reader import read_rules
from batkube.workloads.reader import read_workload
from batkube.workloads.synthetic.recipes import WorkloadRecipe

_RunResult = TypeVar("_RunResult")

PolicyCheck = Callable[[str, Mapping[str, str]], object]
"""Raises InputError if there is no policy of that name that accepts those arguments."""

#: Length of the hash in a run's name, and maximum length of the rest.
_HASH_LENGTH = 10
_LABELS_LENGTH = 60


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of an experiment."""

    #: The run's name, and its folder's.
    name: str
    point: Point
    scenario: Scenario
    #: The programs that it runs, by their names in the scenario.
    programs: Mapping[str, Path]
    #: The pickled policy, if it is a Python object.
    policy: bytes = b""


@dataclass(frozen=True, slots=True)
class Plan:
    """All runs of an experiment, in the order of the grid."""

    experiment: Experiment
    runs: Sequence[PlannedRun]
    #: SHA-256 of every input file, by its path in the scenarios.
    inputs: Mapping[Path, str]


def make_plan(
    experiment: Experiment,
    builder: Builder,
    limit: int | None = None,
    only: GridSelection | None = None,
    policy_check: PolicyCheck = load_policy,
    confirm: Confirmation = trust_all,
) -> Plan:
    """Return the runs of an experiment, or of the part `only`; at most the first `limit` of them.

    Before the first run, every scenario is checked, every input file is read and every scheduler is built, each once.
    `policy_check` checks policies; before it is called, `confirm` gets the code that the runs would execute.
    """
    planner = _Planner(experiment, builder, policy_check)
    selected = select_points(list(points(experiment)), only or {}, experiment)[:limit]
    if not selected:
        raise InputError(experiment.source, at="exclude", problem="leaves no run", remedy="exclude less")
    scenarios = [planner.scenario(point) for point in selected]
    code = [one for scenario in scenarios for one in code_of_scenario(scenario, experiment.source)]
    confirm(list(dict.fromkeys(code)))
    runs = [planner.plan_run(point, scenario) for point, scenario in zip(selected, scenarios, strict=True)]
    return Plan(experiment, runs, planner.inputs)


class _Planner:
    """Plans runs; files, policies and programs are read or built once and cached."""

    def __init__(self, experiment: Experiment, builder: Builder, policy_check: PolicyCheck) -> None:
        self._experiment = experiment
        self._builder = builder
        self._policy_check = policy_check
        self.inputs: dict[Path, str] = {}
        #: Results of `_cached`, by kind and arguments.
        self._cache: dict[tuple[object, ...], Any] = {}

    def plan_run(self, point: Point, scenario: Scenario) -> PlannedRun:
        self._check_parts(scenario)
        for path in (*scenario.input_files, *self._referenced_files(scenario)):
            self.inputs[path] = self._hash(path)
        programs = self._programs(scenario) if scenario.has_external_scheduler else {}
        return PlannedRun(self._name(point, scenario, programs), point, scenario, programs)

    def _cached(self, kind: str, arguments: tuple[object, ...], compute: Callable[[], _RunResult]) -> _RunResult:
        """Return the result of `compute`, which is called once per kind and arguments."""
        key = (kind, *arguments)
        if key not in self._cache:
            self._cache[key] = compute()
        result: _RunResult = self._cache[key]
        return result

    def scenario(self, point: Point) -> Scenario:
        source = self._experiment.source
        try:
            values = scenario_values(dict(point.content), source)
            for required in REQUIRED:
                if not values.get(required):
                    remedy = f"add `{required}` below `base`, or set it by an axis"
                    raise InputError(source, problem=f"has no {required}", remedy=remedy)
            return make_scenario(values, source)
        except InputError as error:
            if error.source != str(source):
                raise
            run = f"the run {point.describe()}"
            at = f"{run}: {error.at}" if error.at else run
            raise InputError(source, at=at, problem=error.problem, remedy=error.remedy) from error

    def _check_parts(self, scenario: Scenario) -> None:
        """Reject invalid parts of a scenario; whether the jobs fit the machines is checked by the run."""
        self._cached("platform", (scenario.platform,), lambda: read_platform(scenario.platform))
        latencies = scenario.latencies
        if latencies is not None:
            self._cached("latencies", (latencies,), lambda: read_latencies(latencies))
        for recipe in scenario.workloads:
            if isinstance(recipe, WorkloadRecipe) and recipe.trace is not None:
                self._check_sample(recipe, recipe.trace, scenario.seed)
        rules = scenario.rules
        if rules is not None:
            self._cached("rules", (rules,), lambda: read_rules(rules))
        if not scenario.has_external_scheduler:
            name, arguments = scenario.scheduler.removeprefix(POLICY_PREFIX), scenario.scheduler_args
            self._cached("policy", (name, *arguments.items()), lambda: self._policy_check(name, arguments))

    def _check_sample(self, recipe: WorkloadRecipe, trace: Path, seed: int) -> None:
        """Reject a sample that the trace cannot provide, such as a window longer than the trace.

        Only the first seed of each recipe is tried, because the result hardly depends on the seed.
        """
        options = json.dumps(dict(recipe.options), sort_keys=True, default=str)
        workload = self._cached("trace", (trace,), lambda: read_workload(trace))
        self._cached("sample", (options,), lambda: recipe.sample(workload, seed))

    def _programs(self, scenario: Scenario) -> dict[str, Path]:
        """Return the programs of a scenario, after a check of their configuration."""
        from batkube.programs.selection.external_programs import external_programs

        texts = (scenario.scheduler, *scenario.more_schedulers, "", *scenario.attach)

        def resolve() -> dict[str, Path]:
            return {program.name: program.binary for program in external_programs(scenario, build)}

        def build(name: str, catalogue: Catalogue) -> Path:
            return self._cached("build", (name, scenario.catalogue), lambda: self._builder(name, catalogue))

        return self._cached("programs", (*texts, scenario.scheduler_config, scenario.catalogue), resolve)

    def _referenced_files(self, scenario: Scenario) -> list[Path]:
        """Return the files that a run reads because its input files or commands refer to them."""
        direct = set(scenario.input_files)
        parts = (scenario.workloads, scenario.events, scenario.scheduler_args, scenario.more_schedulers)
        key = (*map(str, parts), scenario.scheduler, *scenario.attach, scenario.controllers)
        return self._cached(
            "named", key, lambda: [file.path for file in input_files_of(scenario) if file.path not in direct]
        )

    def _name(self, point: Point, scenario: Scenario, programs: Mapping[str, Path]) -> str:
        # A dry run does not build programs, so their hashes are unknown.
        hashes = {name: self._hash(path) if path.exists() else "" for name, path in programs.items()}
        contents = {str(path): self.inputs[path] for path in scenario.input_files}
        contents |= {name: digest for name, digest in hashes.items() if "/" in name}
        described = {key: value for key, value in scenario.describe().items() if key != TIME_LIMIT_KEY}
        decisive = {
            "scenario": relocate(described, contents),
            "programs": list(hashes.values()),
            "labels": dict(point.labels),
            "repeat": point.repeat,
        }
        # Files that the scenario refers to indirectly: usage traces of a workload, the script of a command.
        others = [self.inputs[path] for path in self._referenced_files(scenario)]
        decisive |= {"named": others} if others else {}
        text = json.dumps(decisive, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]
        readable = self._readable_name(point)
        return f"{readable}-{digest}" if readable else digest

    def _readable_name(self, point: Point) -> str:
        """Return the labels of the run, in characters that are valid in folder names."""
        parts = [label.removeprefix(POLICY_PREFIX) for label in point.labels.values()]
        parts += [f"s{point.seed}"] if len(self._experiment.seeds) > 1 else []
        parts += [f"r{point.repeat}"] if self._experiment.repeats > 1 else []
        return re.sub(r"[^A-Za-z0-9.=+_]+", "-", "-".join(parts)).strip("-.")[:_LABELS_LENGTH]

    def _hash(self, path: Path) -> str:
        return self._cached("hash", (path,), lambda: _hash_of(path))


def _hash_of(path: Path) -> str:
    try:
        return fingerprint(path)["sha256"]
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}", remedy="check the path") from error
