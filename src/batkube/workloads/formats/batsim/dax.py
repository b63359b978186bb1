"""Reading workflows: tasks that wait for each other, in Pegasus' DAX format (XML), as Batsim's `--workflow` takes it.

    <adag>
      <job id="ID1" runtime="35.79"/>   <job id="ID2" runtime="2.82" num_procs="4"/>
      <child ref="ID2"> <parent ref="ID1"/> </child>
    </adag>

Files and their sizes are passed over, as by Batsim: a task is a time on a number of machines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.kernel.files.xml_reader import XmlReader
from batkube.kernel.instants import Duration, seconds
from batkube.workloads.files import read_bytes


@dataclass(frozen=True, slots=True)
class WorkflowTask:
    """A task, those that wait for it, and how many it waits for."""

    id: str
    run_time: Duration
    size: int
    children: Sequence[str]
    parent_count: int


@dataclass(frozen=True, slots=True)
class Workflow:
    """The tasks of a file."""

    name: str
    source: str
    #: By id, in the order of ids as texts.
    tasks: Mapping[str, WorkflowTask]


def read_dax(path: Path, name: str) -> Workflow:
    """Return the workflow in the file `path`, called `name`. Raises InputError."""
    reader = _DaxReader(str(path))
    reader.read(read_bytes(path), "a workflow is XML in Pegasus' DAX format")
    tasks = {
        key: WorkflowTask(key, length, size, reader.children[key], len(reader.parents[key]))
        for key, (length, size) in sorted(reader.jobs.items())
    }
    _check_acyclic(path, tasks)
    return Workflow(name, str(path), tasks)


class _DaxReader(XmlReader):
    """Gathers tasks, and who waits for whom."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        #: How long each task takes, and on how many machines.
        self.jobs: dict[str, tuple[Duration, int]] = {}
        self.parents: dict[str, list[str]] = {}
        self.children: dict[str, list[str]] = {}
        self._child = ""

    def on_start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take up a task, or that one waits for another; tasks stand before all of that."""
        if self.depth == 0 and tag != "adag":
            raise self.error(f"begins with <{tag}>", "a workflow is an <adag>, in Pegasus' DAX format")
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
            raise self.error(f"refers to the job {key!r}, which is not there")
        return key

    def _run_time(self, text: str) -> Duration:
        try:
            length = seconds(float(text or 0))
        except ValueError:
            length = Duration(-1)
        if length < 0:
            raise self.error(f"the runtime {text!r} is no time")
        return length


def _size(text: str) -> int:
    """Return how many machines a task needs; what is no such number counts as one, as with Batsim."""
    return max(int(text), 1) if text.isdecimal() else 1


def _check_acyclic(path: Path, tasks: Mapping[str, WorkflowTask]) -> None:
    """Refuse tasks that wait for themselves."""
    waits = {key: task.parent_count for key, task in tasks.items()}
    ready = [key for key, count in waits.items() if not count]
    for key in ready:
        for child in tasks[key].children:
            waits[child] -= 1
            if not waits[child]:
                ready.append(child)
    left = [key for key in tasks if waits[key]]
    if left:
        raise InputError(path, problem=f"{len(left)} of its tasks wait for each other, {left[0]!r} among them")
