"""A session of resource-query: commands in, text out, as Fluxion's program of that name prints it.

What a command matches or finds goes to `output`; what is wrong goes to `errors`, one message each, and the session goes
on; `info`, `list` and `stat` go to `remarks`. Fluxion: resource/utilities/command.cpp.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from batkube.graph.formats.match_writers import MatchWriteError
from batkube.graph.formats.reader import read_bytes
from batkube.graph.idsets import decode_idset
from batkube.graph.matching.booking import JobWindow
from batkube.graph.matching.cancellation import CancelError, CancelVisits, cancel
from batkube.graph.matching.matcher import Matcher, MatchOperation, MatchOutcome
from batkube.graph.matching.subgraphs import attach, remove_path, remove_ranks
from batkube.graph.matching.updates import UPDATE_FORMATS, UpdateError, cancel_part, update
from batkube.graph.query.commands import COMMANDS, QueryCommand
from batkube.graph.query.search import find
from batkube.graph.requests.jobspec import Jobspec, parse_jobspec
from batkube.kernel.errors import InputError

_BAR = "INFO: =============================\n"
#: Nothing was found, and nothing says that there could never be: so Fluxion reports what it could not even look for.
_UNKNOWN = MatchOutcome(None)


@dataclasses.dataclass(slots=True)
class QueryJob:
    """What a session remembers of a job."""

    state: str
    start: int
    jobspec: str


class QuerySession:
    """A matcher, and the jobs that commands have given it."""

    def __init__(self, matcher: Matcher, output: TextIO, errors: TextIO, remarks: TextIO) -> None:
        self.matcher = matcher
        self._output = output
        self._errors = errors
        self._info_output = remarks
        self._jobs: dict[int, QueryJob] = {}
        self._next_job = 1
        self._jobspecs: dict[bytes, Jobspec] = {}
        #: Whether a graph or a jobspec was not as it has to be.
        self.had_bad_input = False

    def run(self, lines: Iterable[str]) -> None:
        """Carry out commands until one says quit."""
        for line in lines:
            words = line.split()
            if words and words[0] in ("quit", "q"):
                return
            command = COMMANDS.get(words[0]) if words else None
            # What is no command is passed over without a word, comments among it.
            if command is not None:
                self._execute(command, words)

    def _execute(self, command: QueryCommand, words: list[str]) -> None:
        least, most = command.words
        if not least <= len(words) <= most:
            self._write_error("malformed command")
            return
        try:
            getattr(self, command.method)(words)
        except InputError as error:
            self.had_bad_input = True
            self._write_error(str(error))
        except (CancelError, UpdateError, ValueError) as fault:
            self._write_error(str(fault))

    def _write_error(self, problem: str) -> None:
        self._errors.write(f"ERROR: {problem}\n")

    def match(self, words: list[str]) -> None:
        """`match OPERATION JOBSPEC`."""
        operation = self._operation(words[1])
        if operation is not None:
            self._match(operation, words[2])

    def multi_match(self, words: list[str]) -> None:
        """`multi-match OPERATION JOBSPEC…`, until one does not match."""
        operation = self._operation(words[1])
        for path in words[2:] if operation is not None else ():
            assert operation is not None
            if not self._match(operation, path):
                break

    def _operation(self, name: str) -> MatchOperation | None:
        try:
            return MatchOperation(name)
        except ValueError:
            self._write_error(f"unknown subcmd {name}")
            return None

    def _match(self, operation: MatchOperation, name: str) -> bool:
        job = self._next_job
        try:
            content = self._content(name)
        except ValueError as error:
            self._write_error(str(error))
            return True
        try:
            outcome = self.matcher.match(self._jobspec(Path(name), content), operation, job=job)
        except InputError as error:
            self.had_bad_input = True
            self._write_error(str(error))
            self._report_match(operation, job, name, _UNKNOWN)
            return False
        try:
            self._output.write(self.matcher.writer.text())
        except MatchWriteError as fault:
            # Fluxion takes a match that its writer cannot write for none, and gives the job's number away once more.
            self._errors.write(f"match_allocate: ERROR: match writer emit: {fault}\n")
            self._report_match(operation, job, name, MatchOutcome(None, is_satisfiable=fault.is_satisfiable))
            return False
        self._next_job += operation.allocates
        self._report_match(operation, job, name, outcome)
        return outcome.is_satisfiable if operation is MatchOperation.SATISFIABILITY else outcome.is_match

    def _jobspec(self, path: Path, content: bytes) -> Jobspec:
        jobspec = self._jobspecs.get(content)
        if jobspec is None:
            jobspec = self._jobspecs[content] = parse_jobspec(path, content)
        return jobspec

    def _report_match(self, operation: MatchOperation, job: int, name: str, outcome: MatchOutcome) -> None:
        if operation is MatchOperation.SATISFIABILITY:
            word = "Satisfiable" if outcome.is_satisfiable else "Unsatisfiable"
            self._output.write(f"{_BAR}INFO: {word} request\n{_BAR}")
            return
        if outcome.start is None:
            doubt = "" if outcome.is_satisfiable else "INFO: Unsatisfiable request\n"
            self._output.write(f"{_BAR}INFO: No matching resources found\n{doubt}INFO: JOBID={job}\n{_BAR}")
            return
        state = "ALLOCATED" if outcome.start == 0 else "RESERVED"
        time = "Now" if outcome.start == 0 else str(outcome.start)
        word = state if operation.allocates else "MATCHED"
        self._output.write(f"{_BAR}INFO: JOBID={job}\nINFO: RESOURCES={word}\nINFO: SCHEDULED AT={time}\n{_BAR}")
        if operation.allocates:
            self._jobs[job] = QueryJob(state, outcome.start, name)

    def update(self, words: list[str]) -> None:
        """`update allocate|reserve FORMAT FILE JOB START DURATION`."""
        _, kind, format, name, *numbers = words
        job, start, duration = (int(number) for number in numbers)
        if kind not in ("allocate", "reserve"):
            raise ValueError(f"unknown subcmd {kind}")
        if format not in UPDATE_FORMATS:
            raise ValueError(f"unsupported reader {format}")
        if job in self._jobs and self._jobs[job].state != "CANCELED":
            raise ValueError("existing Jobid ")
        if start < 0 or duration <= 0:
            raise ValueError(f"invalid time ({start}, {duration})")
        outcome = MatchOutcome(start, duration)
        content = self._content(name)
        try:
            update(self.matcher, format, Path(name), content, JobWindow(job, start, duration, -1))
        except UpdateError as fault:
            self._write_error(str(fault))
            outcome = MatchOutcome(None)
        with contextlib.suppress(MatchWriteError):
            self._output.write(self.matcher.writer.text())
        self._report_match(MatchOperation.ALLOCATE, job, name, outcome)
        self._next_job = job + 1

    def attach(self, words: list[str]) -> None:
        """`attach FILE`."""
        attach(self.matcher, Path(words[1]), self._content(words[1]))

    def _content(self, name: str) -> bytes:
        try:
            return read_bytes(Path(name))
        except InputError:
            raise ValueError(f"can't open {name}") from None

    def remove(self, words: list[str]) -> None:
        """`remove PATH true` or `remove IDSET false`."""
        _, target, is_path = words
        if is_path == "true":
            if not remove_path(self.matcher, target):
                raise ValueError(f"can't remove subgraph {target}")
        elif is_path == "false":
            remove_ranks(self.matcher, decode_idset(target))
        else:
            raise ValueError("invalid path boolean input ")

    def find(self, words: list[str]) -> None:
        """`find CRITERIA`."""
        criteria = " ".join(words[1:])
        try:
            find(self.matcher.view, self.matcher.ledger, criteria, self.matcher.writer)
        except ValueError as error:
            self._errors.write(f"find: invalid criteria: {criteria}: {error}\n")
            return
        try:
            text = self.matcher.writer.text()
        except MatchWriteError as fault:
            self._errors.write(f"find: ERROR: find writer emit: {fault}\n")
            return
        self._output.write(f'{text}{_BAR}INFO: EXPRESSION="{criteria}"\n{_BAR}')

    def cancel(self, words: list[str]) -> None:
        """`cancel JOB [stats]`."""
        job = self._job_number(words[1])
        if not self._is_active(job):
            self._errors.write(f"cancel: ERROR: nonexistent job {job}\n")
            return
        try:
            visits = cancel(self.matcher.view, self.matcher.ledger, job)
        except CancelError as fault:
            self._errors.write(f"cancel: ERROR: error encountered while removing job {job}\n")
            self._info_output.write(f"{fault}\n")
            return
        self._jobs[job].state = "CANCELED"
        if words[2:] == ["stats"]:
            self._write_counts("CANCEL", visits)

    def partial_cancel(self, words: list[str]) -> None:
        """`partial-cancel JOB FORMAT FILE [stats]`."""
        job, format, name = self._job_number(words[1]), words[2], words[3]
        if format not in ("jgf", "rv1exec"):
            raise ValueError(f"unsupported reader {format}")
        content = self._content(name)
        if not self._is_active(job):
            raise ValueError(f"nonexistent job {job}")
        if self._jobs[job].state == "RESERVED":
            raise ValueError("reservations not currently supported by partial cancel")
        try:
            if cancel_part(self.matcher, job, format, Path(name), content):
                self._jobs[job].state = "CANCELED"
        except (CancelError, InputError) as fault:
            self.had_bad_input |= isinstance(fault, InputError)
            self._write_error(f"error encountered while removing job {job}")
            self._info_output.write(f"{fault}\n")
        if words[4:] == ["stats"]:
            # Vertices are found by their ranks, so none is looked at; Fluxion's counts are of its ways to find them.
            self._write_counts("PARTIAL CANCEL", CancelVisits(0, 0))

    def _write_counts(self, what: str, visits: CancelVisits) -> None:
        counts = f'{what} PREORDER COUNT="{visits.preorder}"\nINFO: {what} POSTORDER COUNT="{visits.postorder}"'
        self._output.write(f"{_BAR}INFO: {counts}\n{_BAR}")

    def _is_active(self, job: int) -> bool:
        return job in self._jobs and self._jobs[job].state != "CANCELED"

    def _job_number(self, text: str) -> int:
        return int(text) if text.isdecimal() else 0

    def set_property(self, words: list[str]) -> None:
        """`set-property PATH KEY=VALUE`."""
        _, path, pair = words
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            self._output.write("Incorrect input format. \nPlease use `set-property <resource> PROPERTY=VALUE`.\n")
        elif not self.matcher.set_property(path, key, value):
            self._output.write(f"Couldn't find path {path} in resource graph.\n")

    def get_property(self, words: list[str]) -> None:
        """`get-property PATH`."""
        path, graph = words[1], self.matcher.graph
        if not graph.at_path(path):
            self._output.write(f"Could not find path {path} in resource graph.\n")
        for vertex in graph.at_path(path):
            properties = graph.properties.get(vertex, {})
            if not properties:
                remark = f"(vtx's uniq_id={graph.uniq_id[vertex]})"
                self._output.write(f"No properties were found for {path} {remark}.\n")
            for key, value in sorted(properties.items()):
                self._output.write(f"{key}={value}\n")

    def set_status(self, words: list[str]) -> None:
        """`set-status PATH up|down`."""
        _, path, status = words
        if not self.matcher.graph.at_path(path):
            self._output.write(f"Could not find path {path} in resource graph.\n")
        elif status not in ("up", "down"):
            self._write_error("unrecognized status")
        else:
            self.matcher.set_status(path, is_up=status == "up")

    def get_status(self, words: list[str]) -> None:
        """`get-status PATH`."""
        path, graph = words[1], self.matcher.graph
        if not graph.at_path(path):
            self._output.write(f"Could not find path {path} in resource graph.\n")
        for vertex in graph.at_path(path):
            self._output.write(f"{path} is {'up' if graph.is_up[vertex] else 'down'}\n")

    def list_jobs(self, words: list[str]) -> None:
        """`list`."""
        for job in sorted(self._jobs):
            self._write_job(job)

    def info(self, words: list[str]) -> None:
        """`info JOB`."""
        job = self._job_number(words[1])
        if job not in self._jobs:
            self._errors.write(f"info: ERROR: nonexistent job {job}\n")
            return
        self._write_job(job)

    def _write_job(self, job: int) -> None:
        """Write what is known of a job; in the place of the time that its match took is a zero."""
        entry = self._jobs[job]
        self._info_output.write(f"INFO: {job}, {entry.state}, {entry.start}, {entry.jobspec}, 0\n")

    def cat(self, words: list[str]) -> None:
        """`cat FILE`."""
        self._info_output.write(self._content(words[1]).decode("utf-8", "replace"))
        self._info_output.write(f"INFO: Jobspec in {words[1]}\n")

    def stat(self, words: list[str]) -> None:
        """`stat`: how many jobs there are; in the place of how long matches took are zeros."""
        self._info_output.write(f"INFO: Num. of Jobs Matched: {len(self._jobs)}\n")
        self._info_output.writelines(f"INFO: {which}. Match Time: 0\n" for which in ("Min", "Max", "Avg"))

    def help(self, words: list[str]) -> None:
        """`help [COMMAND]`."""
        commands = COMMANDS.values() if len(words) != 2 else [COMMANDS.get(words[1])]
        if None in commands:
            self._info_output.write(f"ERROR: unknown command: {words[1]}\n")
        names = dict.fromkeys(command.usage for command in commands if command is not None)
        self._info_output.writelines(f"INFO: {usage}\n" for usage in names)
