"""Explain a job, a pod or a node of a finished run."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration
from batkube.kernel.quantities import MACHINE
from batkube.outputs.explain.evidence import Evidence
from batkube.outputs.explain.model import ExecutionExplanation, Explanation, JobExplanation, PodExplanation
from batkube.outputs.explain.nodes import explain_node
from batkube.outputs.explain.overtaking import overtakers_of
from batkube.outputs.explain.scheduling_rules import rule_of
from batkube.outputs.explain.units import NEVER, Unit, node_names, owner_name, unit_of_pod, units_of
from batkube.outputs.explain.waits import WaitAnalysis
from batkube.outputs.playback.model import RecordedJob, RecordedNode, RecordedPod
from batkube.outputs.playback.playback import Playback
from batkube.text.suggestions import suggestion

#: How many similar names a message lists.
_SIMILAR_NAMES = 5


class Explainer:
    """Explains the jobs, pods and nodes of one run."""

    def __init__(self, folder: str | Path) -> None:
        """Read the output folder of a run. Raises InputError."""
        self.playback = Playback.read(_run_folder(Path(folder)))
        self._scheduler = str(self.playback.files.manifest.get("scheduler", ""))
        self._counted = "machines" if self.playback.main_resource == MACHINE else "pods"
        self._rule = rule_of(self._scheduler)
        self._evidence = Evidence(self.playback)
        self._units = units_of(self.playback)

    def explain(self, name: str) -> Explanation:
        """Explain the job, pod or node called `name`; the workload of a job may be omitted. Raises InputError."""
        subject = self._find(name)
        if isinstance(subject, RecordedJob):
            return self._job(subject)
        if isinstance(subject, RecordedNode):
            return explain_node(self.playback, subject)
        return self._pod(subject)

    def _find(self, name: str) -> RecordedJob | RecordedNode | Sequence[RecordedPod]:
        playback = self.playback
        jobs = [job for job in playback.jobs if name in (job.key, job.name)]
        pods = [pod for pod in playback.pods if pod.name == name.removeprefix("default/")]
        nodes = [node for node in playback.nodes if node.name == name]
        matches = [job for job in jobs if job.key == name] or jobs
        if len(matches) > 1:
            keys = ", ".join(job.key for job in matches[:_SIMILAR_NAMES])
            problem = f"{len(matches)} jobs have this name: {keys}"
            raise InputError(playback.files.path, at=name, problem=problem, remedy="add the workload: WORKLOAD!JOB")
        if matches:
            return matches[0]
        if nodes:
            return nodes[0]
        if pods:
            return pods
        names = [names for names in ([job.key for job in playback.jobs], [pod.name for pod in playback.pods]) if names]
        all_names = [*dict.fromkeys(one for group in names for one in group), *(node.name for node in playback.nodes)]
        similar = difflib.get_close_matches(name, all_names, n=_SIMILAR_NAMES)
        remedy = f"similar names: {', '.join(similar)}" if similar else suggestion(name, all_names)
        raise InputError(playback.files.path, at=name, problem="is not a job, pod or node of this run", remedy=remedy)

    def _job(self, job: RecordedJob) -> JobExplanation:
        units = [unit for unit in self._units if unit.name == job.key]
        return JobExplanation(
            job.key,
            self._scheduler,
            self._counted,
            job.size,
            job.walltime,
            job.user,
            job.priority,
            job.final_state,
            self._evidence.has_reasons,
            tuple(map(self._placement, units)),
        )

    def _pod(self, pods: Sequence[RecordedPod]) -> PodExplanation:
        last = pods[-1]
        priority = 0 if last.job is None else self.playback.jobs[last.job].priority
        return PodExplanation(
            last.name,
            "" if last.job is None else owner_name(self.playback, last),
            last.owner,
            self._scheduler,
            self._counted,
            last.requests,
            last.phase,
            self._evidence.has_reasons,
            tuple(self._placement(unit_of_pod(pod, priority)) for pod in pods),
        )

    def _placement(self, unit: Unit) -> ExecutionExplanation:
        others = self._units
        if unit.pods and unit.pods[0].job is not None and unit.name == unit.pods[0].name:
            # A pod of a job does not compete with its own job.
            own_job = owner_name(self.playback, unit.pods[0])
            others = tuple(other for other in others if other.name != own_job)
        wait = WaitAnalysis(self.playback, others, unit, self._rule)
        end = self.playback.end if unit.wait_end is NEVER else unit.wait_end
        return ExecutionExplanation(
            unit.queued,
            unit.first_bound,
            unit.bound,
            unit.started,
            unit.ended,
            Duration(max(0, end - unit.queued)),
            unit.size,
            node_names(unit.pods),
            wait.periods,
            wait.released_by(),
            overtakers_of(others, unit, self._rule, self._evidence),
            self._evidence.start_reason(unit.name, unit.bound),
            self._evidence.reservations(unit),
            self._evidence.attempts(unit),
            self._evidence.choices(unit),
            self._evidence.facts(unit),
        )


def _run_folder(folder: Path) -> Path:
    """Return the folder of a run. Raises InputError for the folder of an experiment."""
    runs = folder / "runs"
    if not (folder / "jobs.csv").is_file() and runs.is_dir():
        first = next((path for path in sorted(runs.iterdir()) if path.is_dir()), runs / "NAME")
        problem = "is the folder of an experiment, which has many runs"
        raise InputError(folder, problem=problem, remedy=f"name one of its runs, such as {first}")
    return folder
