"""Reading workflows: tasks that wait for each other, in Pegasus' DAX format (XML), as Batsim's `--workflow` takes it.

    <adag>
      <job id="ID1" runtime="35.79"/>   <job id="ID2" runtime="2.82" num_procs="4"/>
      <child ref="ID2"> <parent ref="ID1"/> </child>
    </adag>

Files and their sizes are passed over, as by Batsim: a task is a time on a number of machines.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, seconds
from batkube.workloads.files import read_bytes


@dataclass(frozen=True, slots=True)
class WorkflowTask:
    """A task, those that wait for it, and how many it waits for."""

    id: str
    length: Duration
    size: int
    children: Sequence[str]
    parents: int


@dataclass(frozen=True, slots=True)
class Workflow:
    """The tasks of a file."""

    name: str
    source: str
    #: By id, in the order of ids as texts.
    tasks: Mapping[str, WorkflowTask]


def read_dax(path: Path, name: str) -> Workflow:
    """Return the workflow in the file `path`, called `name`. Raises InputError."""
    root = _parsed(path)
    jobs = {job.get("id", ""): job for job in _elements(root, "job")}
    parents: dict[str, list[str]] = {key: [] for key in jobs}
    children: dict[str, list[str]] = {key: [] for key in jobs}
    for edge in _elements(root, "child"):
        child = _known(path, edge, jobs)
        for end in _elements(edge, "parent"):
            parent = _known(path, end, jobs)
            if parent not in parents[child]:
                parents[child].append(parent)
                children[parent].append(child)
    tasks = {
        key: WorkflowTask(key, _length(path, jobs[key]), _size(jobs[key]), children[key], len(parents[key]))
        for key in sorted(jobs)
    }
    _check_order(path, tasks)
    return Workflow(name, str(path), tasks)


def _parsed(path: Path) -> ElementTree.Element:
    try:
        root = ElementTree.fromstring(read_bytes(path))
    except ElementTree.ParseError as error:
        raise InputError(path, problem=f"is not XML: {error}") from None
    if _tag(root) != "adag":
        raise InputError(path, problem=f"begins with <{_tag(root)}>", remedy="a workflow is an <adag>, in DAX format")
    return root


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _elements(element: ElementTree.Element, tag: str) -> Iterator[ElementTree.Element]:
    return (one for one in element if _tag(one) == tag)


def _known(path: Path, element: ElementTree.Element, jobs: Mapping[str, object]) -> str:
    key = element.get("ref", "")
    if key not in jobs:
        raise InputError(path, at=f"<{_tag(element)}>", problem=f"refers to the job {key!r}, which is not there")
    return key


def _length(path: Path, job: ElementTree.Element) -> Duration:
    text = job.get("runtime", "")
    try:
        return seconds(float(text or 0))
    except ValueError:
        raise InputError(path, at=f"job {job.get('id')!r}", problem=f"its runtime {text!r} is no time") from None


def _size(job: ElementTree.Element) -> int:
    """Return how many machines a task needs; what is no such number counts as one, as with Batsim."""
    text = job.get("num_procs", "1")
    return max(int(text), 1) if text.isdecimal() else 1


def _check_order(path: Path, tasks: Mapping[str, WorkflowTask]) -> None:
    """Refuse tasks that wait for themselves."""
    waits = {key: task.parents for key, task in tasks.items()}
    ready = [key for key, count in waits.items() if not count]
    for key in ready:
        for child in tasks[key].children:
            waits[child] -= 1
            if not waits[child]:
                ready.append(child)
    left = [key for key in tasks if waits[key]]
    if left:
        raise InputError(path, problem=f"{len(left)} of its tasks wait for each other, {left[0]!r} among them")
