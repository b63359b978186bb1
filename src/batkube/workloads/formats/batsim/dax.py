"""Read workflows in Pegasus' DAX format (XML): tasks with dependencies, as for Batsim's `--workflow`.

    <adag>
      <job id="ID1" runtime="35.79"/>   <job id="ID2" runtime="2.82" num_procs="4"/>
      <child ref="ID2"> <parent ref="ID1"/> </child>
    </adag>

Like Batsim, this ignores files and their sizes: a task is a run time on a number of machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.files.xml_reader import XmlReader
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, seconds
from batkube.workloads.files import read_bytes


@dataclass(frozen=True, slots=True)
class WorkflowTask:
    """A task, the tasks that depend on it, and the number of tasks on which it depends."""

    id: str
    run_time: Duration
    size: int
    children: Sequence[str]
    parent_count: int


@dataclass(frozen=True, slots=True)
class Workflow:
    """The tasks of one DAX file."""

    name: str
    source: str
    #: By id, sorted by id as text.
    tasks: Mapping[str, WorkflowTask]


def read_dax(path: Path, name: str) -> Workflow:
    """Read the DAX file `path` as the workflow `name`. Raises InputError."""
    reader = _DaxReader(str(path))
    reader.read(read_bytes(path), "write the workflow as XML in Pegasus' DAX format")
    tasks = {
        key: WorkflowTask(key, length, size, reader.children[key], len(reader.parents[key]))
        for key, (length, size) in sorted(reader.jobs.items())
    }
    _check_acyclic(path, tasks)
    return Workflow(name, str(path), tasks)


class _DaxReader(XmlReader):
    """Collects tasks and their dependencies."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        #: The run time and the number of machines of each task.
        self.jobs: dict[str, tuple[Duration, int]] = {}
        self.parents: dict[str, list[str]] = {}
        self.children: dict[str, list[str]] = {}
        self._child = ""

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        """Add a task or a dependency. In a DAX file, all tasks precede the dependencies."""
        if self.depth == 0 and tag != "adag":
            raise self.error(f"begins with <{tag}>", "write an <adag> element, as in Pegasus' DAX format")
        if self.depth == 1 and tag == "job":
            key = attributes.get("id", "")
            self.jobs[key] = self._run_time(attributes.get("runtime", "")), _size(attributes.get("num_procs", "1"))
            self.parents[key], self.children[key] = [], []
        elif self.depth == 1 and tag == "child":
            self._child = self._referenced_task(attributes)
        elif self.depth == 2 and tag == "parent":
            parent = self._referenced_task(attributes)
            if parent not in self.parents[self._child]:
                self.parents[self._child].append(parent)
                self.children[parent].append(self._child)

    def _referenced_task(self, attributes: dict[str, str]) -> str:
        key = attributes.get("ref", "")
        if key not in self.jobs:
            raise self.error(f"refers to the job {key!r}, which is not defined before")
        return key

    def _run_time(self, text: str) -> Duration:
        try:
            length = seconds(float(text or 0))
        except ValueError:
            length = Duration(-1)
        if length < 0:
            raise self.error(f"the runtime {text!r} is not a number of seconds")
        return length


def _size(text: str) -> int:
    """Return the number of machines of a task; like Batsim, treat any other text as 1."""
    return max(int(text), 1) if text.isdecimal() else 1


def _check_acyclic(path: Path, tasks: Mapping[str, WorkflowTask]) -> None:
    """Raise InputError if the dependencies contain a cycle."""
    waiting_for = {key: task.parent_count for key, task in tasks.items()}
    ready = [key for key, count in waiting_for.items() if not count]
    for key in ready:
        for child in tasks[key].children:
            waiting_for[child] -= 1
            if not waiting_for[child]:
                ready.append(child)
    blocked = [key for key in tasks if waiting_for[key]]
    if blocked:
        problem = f"has a dependency cycle that blocks {len(blocked)} tasks, {blocked[0]!r} among them"
        raise InputError(path, problem=problem, remedy="remove one dependency of the cycle")
