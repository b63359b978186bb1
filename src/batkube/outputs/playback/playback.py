"""A finished run, read from its folder, and its state at any instant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant, seconds
from batkube.kernel.quantities import CPU, MACHINE
from batkube.outputs.measures.run_data.run_files import RunFiles
from batkube.outputs.playback.cells import at_resolution
from batkube.outputs.playback.deltas import Delta, deltas_of
from batkube.outputs.playback.job_reader import read_jobs
from batkube.outputs.playback.journal_entries import read_journal
from batkube.outputs.playback.model import JournalEntry, RecordedJob, RecordedNode, RecordedPod
from batkube.outputs.playback.node_reader import read_nodes
from batkube.outputs.playback.pod_reader import attempts_of, read_pods, with_pods
from batkube.outputs.playback.states import State, StateFold, state_of


@dataclass(frozen=True, slots=True)
class Playback:
    """The nodes, jobs and pods of a run, its deltas, and its state at any instant."""

    files: RunFiles
    #: In order of machine ids.
    nodes: tuple[RecordedNode, ...]
    #: In order of submission.
    jobs: tuple[RecordedJob, ...]
    #: In order of creation.
    pods: tuple[RecordedPod, ...]
    #: In order of time; `deltas` says in which order at one instant.
    deltas: tuple[Delta, ...]
    #: All lines of the journal.
    journal: tuple[JournalEntry, ...]
    #: The end of the run.
    end: Instant
    #: The resource by which utilisation is measured: machines, or cpu if pods share them.
    main_resource: str

    @classmethod
    def read(cls, folder: str | Path) -> Playback:
        """Read the output folder of a run. Raises InputError, also if --outputs left out the journal or pods.csv."""
        files = RunFiles(folder)
        for name in ("journal.jsonl", "pods.csv"):
            _require(files, name)
        whole_machines = files.manifest.get("resources") == "machines"
        journal = read_journal(files.file("journal.jsonl"))
        nodes = read_nodes(files, journal, whole_machines=whole_machines)
        jobs = read_jobs(files, journal)
        pods = read_pods(files, jobs, whole_machines=whole_machines)
        jobs = with_pods(jobs, pods)
        deltas = deltas_of(nodes, jobs, pods, attempts_of(journal, pods))
        end = _end_of(files, deltas)
        return cls(files, nodes, jobs, pods, deltas, journal, end, MACHINE if whole_machines else CPU)

    def state_at(self, instant: Instant) -> State:
        """Return the state after all deltas at or before `instant`."""
        return state_of(self.nodes, self.jobs, self.pods, instant)

    def fold(self) -> StateFold:
        """Return the state before the run, to which deltas can be applied."""
        return StateFold(self.nodes, self.pods)


def _require(files: RunFiles, name: str) -> None:
    path = files.file(name)
    if not path.is_file():
        problem = f"has no {name}, which is needed to replay the run"
        raise InputError(path.parent, problem=problem, remedy="use the output folder of `batkube run`")


def _end_of(files: RunFiles, deltas: tuple[Delta, ...]) -> Instant:
    latest = deltas[-1].at if deltas else Instant(0)
    end_s = files.manifest.get("end_s")
    return max(latest, at_resolution(seconds(end_s))) if isinstance(end_s, int | float) else latest
