"""A session of resource-query: executes commands and writes text like Fluxion's program of that name.

Matches and findings go to `output`. Errors go to `errors`, one message each, and the session
continues. The commands `info`, `list` and `stat` write to `info_output`.

Imitates flux-sched resource/utilities/command.cpp.
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
#: Fluxion reports this for an invalid request too: no match, but satisfiable.
_NO_MATCH = MatchOutcome(None)


@dataclasses.dataclass(slots=True)
class QueryJob:
    """A job of the session: its state, its start and the file of its jobspec."""

    state: str
    start: int
    jobspec: str


class QuerySession:
    """A matcher, and the jobs that commands have created."""

    def __init__(self, matcher: Matcher, output: TextIO, errors: TextIO, info_output: TextIO) -> None:
        self.matcher = matcher
        self._output = output
        self._errors = errors
        self._info_output = info_output
        self._jobs: dict[int, QueryJob] = {}
        self._next_job = 1
        self._jobspecs: dict[bytes, Jobspec] = {}
        #: Whether a graph or a jobspec was invalid.
        self.had_bad_input = False

    def run(self, lines: Iterable[str]) -> None:
        """Execute commands until `quit`. Lines that are not commands, such as comments, are ignored."""
        for line in lines:
            words = line.split()
            if words and words[0] in ("quit", "q"):
                return
            command = COMMANDS.get(words[0]) if words else None
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
        except (CancelError, UpdateError, ValueError) as error:
            self._write_error(str(error))

    def _write_error(self, problem: str) -> None:
        self._errors.write(f"ERROR: {problem}\n")

    def match(self, words: list[str]) -> None:
        """Execute `match OPERATION JOBSPEC`."""
        operation = self._operation(words[1])
        if operation is not None:
            self._match(operation, words[2])

    def multi_match(self, words: list[str]) -> None:
        """Execute `multi-match OPERATION JOBSPEC…`; stop at the first jobspec that does not match."""
        operation = self._operation(words[1])
        if operation is None:
            return
        for path in words[2:]:
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
            self._report_match(operation, job, name, _NO_MATCH)
            return False
        try:
            self._output.write(self.matcher.writer.text())
        except MatchWriteError as error:
            # Fluxion reports that nothing matched and uses the job's number again.
            self._errors.write(f"match_allocate: ERROR: match writer emit: {error}\n")
            self._report_match(operation, job, name, MatchOutcome(None, is_satisfiable=error.is_satisfiable))
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
            verdict = "Satisfiable" if outcome.is_satisfiable else "Unsatisfiable"
            self._output.write(f"{_BAR}INFO: {verdict} request\n{_BAR}")
            return
        if outcome.start is None:
            hint = "" if outcome.is_satisfiable else "INFO: Unsatisfiable request\n"
            self._output.write(f"{_BAR}INFO: No matching resources found\n{hint}INFO: JOBID={job}\n{_BAR}")
            return
        state = "ALLOCATED" if outcome.start == 0 else "RESERVED"
        time = "Now" if outcome.start == 0 else str(outcome.start)
        resources = state if operation.allocates else "MATCHED"
        self._output.write(f"{_BAR}INFO: JOBID={job}\nINFO: RESOURCES={resources}\nINFO: SCHEDULED AT={time}\n{_BAR}")
        if operation.allocates:
            self._jobs[job] = QueryJob(state, outcome.start, name)

    def update(self, words: list[str]) -> None:
        """Execute `update allocate|reserve FORMAT FILE JOB START DURATION`."""
        _, subcommand, format, name, *numbers = words
        job, start, duration = (int(number) for number in numbers)
        if subcommand not in ("allocate", "reserve"):
            raise ValueError(f"unknown subcmd {subcommand}")
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
        except UpdateError as error:
            self._write_error(str(error))
            outcome = MatchOutcome(None)
        with contextlib.suppress(MatchWriteError):
            self._output.write(self.matcher.writer.text())
        self._report_match(MatchOperation.ALLOCATE, job, name, outcome)
        self._next_job = job + 1

    def attach(self, words: list[str]) -> None:
        """Execute `attach FILE`."""
        attach(self.matcher, Path(words[1]), self._content(words[1]))

    def _content(self, name: str) -> bytes:
        try:
            return read_bytes(Path(name))
        except InputError:
            raise ValueError(f"can't open {name}") from None

    def remove(self, words: list[str]) -> None:
        """Execute `remove PATH true` or `remove IDSET false`."""
        _, target, is_path = words
        if is_path == "true":
            if not remove_path(self.matcher, target):
                raise ValueError(f"can't remove subgraph {target}")
        elif is_path == "false":
            remove_ranks(self.matcher, decode_idset(target))
        else:
            raise ValueError("invalid path boolean input ")

    def find(self, words: list[str]) -> None:
        """Execute `find CRITERIA`."""
        criteria = " ".join(words[1:])
        try:
            find(self.matcher.view, self.matcher.ledger, criteria, self.matcher.writer)
        except ValueError as error:
            self._errors.write(f"find: invalid criteria: {criteria}: {error}\n")
            return
        try:
            text = self.matcher.writer.text()
        except MatchWriteError as error:
            self._errors.write(f"find: ERROR: find writer emit: {error}\n")
            return
        self._output.write(f'{text}{_BAR}INFO: EXPRESSION="{criteria}"\n{_BAR}')

    def cancel(self, words: list[str]) -> None:
        """Execute `cancel JOB [stats]`."""
        job = self._job_number(words[1])
        if not self._is_active(job):
            self._errors.write(f"cancel: ERROR: nonexistent job {job}\n")
            return
        try:
            visits = cancel(self.matcher.view, self.matcher.ledger, job)
        except CancelError as error:
            self._errors.write(f"cancel: ERROR: error encountered while removing job {job}\n")
            self._info_output.write(f"{error}\n")
            return
        self._jobs[job].state = "CANCELED"
        if words[2:] == ["stats"]:
            self._write_counts("CANCEL", visits)

    def partial_cancel(self, words: list[str]) -> None:
        """Execute `partial-cancel JOB FORMAT FILE [stats]`."""
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
        except (CancelError, InputError) as error:
            self.had_bad_input |= isinstance(error, InputError)
            self._write_error(f"error encountered while removing job {job}")
            self._info_output.write(f"{error}\n")
        if words[4:] == ["stats"]:
            # Zero, because vertices are indexed by rank: no search is needed.
            self._write_counts("PARTIAL CANCEL", CancelVisits(0, 0))

    def _write_counts(self, what: str, visits: CancelVisits) -> None:
        counts = f'{what} PREORDER COUNT="{visits.preorder}"\nINFO: {what} POSTORDER COUNT="{visits.postorder}"'
        self._output.write(f"{_BAR}INFO: {counts}\n{_BAR}")

    def _is_active(self, job: int) -> bool:
        return job in self._jobs and self._jobs[job].state != "CANCELED"

    def _job_number(self, text: str) -> int:
        return int(text) if text.isdecimal() else 0

    def set_property(self, words: list[str]) -> None:
        """Execute `set-property PATH KEY=VALUE`."""
        _, path, pair = words
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            self._output.write("Incorrect input format. \nPlease use `set-property <resource> PROPERTY=VALUE`.\n")
        elif not self.matcher.set_property(path, key, value):
            self._output.write(f"Couldn't find path {path} in resource graph.\n")

    def get_property(self, words: list[str]) -> None:
        """Execute `get-property PATH`."""
        path, graph = words[1], self.matcher.graph
        if not graph.at_path(path):
            self._output.write(f"Could not find path {path} in resource graph.\n")
        for vertex in graph.at_path(path):
            properties = graph.properties.get(vertex, {})
            if not properties:
                suffix = f"(vtx's uniq_id={graph.uniq_id[vertex]})"
                self._output.write(f"No properties were found for {path} {suffix}.\n")
            for key, value in sorted(properties.items()):
                self._output.write(f"{key}={value}\n")

    def set_status(self, words: list[str]) -> None:
        """Execute `set-status PATH up|down`."""
        _, path, status = words
        if not self.matcher.graph.at_path(path):
            self._output.write(f"Could not find path {path} in resource graph.\n")
        elif status not in ("up", "down"):
            self._write_error("unrecognized status")
        else:
            self.matcher.set_status(path, is_up=status == "up")

    def get_status(self, words: list[str]) -> None:
        """Execute `get-status PATH`."""
        path, graph = words[1], self.matcher.graph
        if not graph.at_path(path):
            self._output.write(f"Could not find path {path} in resource graph.\n")
        for vertex in graph.at_path(path):
            self._output.write(f"{path} is {'up' if graph.is_up[vertex] else 'down'}\n")

    def list_jobs(self, words: list[str]) -> None:
        """Execute `list`."""
        for job in sorted(self._jobs):
            self._write_job(job)

    def info(self, words: list[str]) -> None:
        """Execute `info JOB`."""
        job = self._job_number(words[1])
        if job not in self._jobs:
            self._errors.write(f"info: ERROR: nonexistent job {job}\n")
            return
        self._write_job(job)

    def _write_job(self, job: int) -> None:
        """Write a job. The time that its match took is written as zero."""
        entry = self._jobs[job]
        self._info_output.write(f"INFO: {job}, {entry.state}, {entry.start}, {entry.jobspec}, 0\n")

    def cat(self, words: list[str]) -> None:
        """Execute `cat FILE`."""
        self._info_output.write(self._content(words[1]).decode("utf-8", "replace"))
        self._info_output.write(f"INFO: Jobspec in {words[1]}\n")

    def stat(self, words: list[str]) -> None:
        """Execute `stat`: write the number of jobs. The times of matches are written as zeros."""
        self._info_output.write(f"INFO: Num. of Jobs Matched: {len(self._jobs)}\n")
        self._info_output.writelines(f"INFO: {statistic}. Match Time: 0\n" for statistic in ("Min", "Max", "Avg"))

    def help(self, words: list[str]) -> None:
        """Execute `help [COMMAND]`."""
        commands = COMMANDS.values() if len(words) != 2 else [COMMANDS.get(words[1])]
        if None in commands:
            self._info_output.write(f"ERROR: unknown command: {words[1]}\n")
        names = dict.fromkeys(command.usage for command in commands if command is not None)
        self._info_output.writelines(f"INFO: {usage}\n" for usage in names)
