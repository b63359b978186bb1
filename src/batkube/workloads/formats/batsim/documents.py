"""Read Batsim's workloads: one JSON object with `nb_res`, `jobs` and `profiles`.

Format: Batsim documentation, "Workload" (version 4). Extra keys are allowed anywhere; `extensions` defines ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import msgspec

from batkube.kernel.errors import InputError, nesting_limit
from batkube.kernel.instants import LATEST_NS, NANOSECONDS_PER_SECOND, Duration, Instant
from batkube.workloads import fields as require
from batkube.workloads import names
from batkube.workloads.fields import Place
from batkube.workloads.files import read_bytes
from batkube.workloads.formats.batsim.extensions import Extension, read_extension
from batkube.workloads.formats.batsim.profiles import BatsimProfiles
from batkube.workloads.history import HISTORY_KEY, UNREADABLE_STEP, converted_steps
from batkube.workloads.model import Job, Profile, Requests, TraceHeader, Workload
from batkube.workloads.walltime_notes import WALLTIME_TOO_LONG

_BYTE_POSITION = re.compile(r"\(byte ([0-9]+)\)")
#: Batsim's own keys. Most jobs have no others, so reading their extensions can be skipped.
_BATSIM_JOB_KEYS = frozenset({"id", "subtime", "walltime", "res", "profile", "user", "user_id"})
#: Marks a workload of unknown machine size. Our writer adds nb_res nevertheless, because Batsim requires it.
ASSUMED_SIZE_KEY = "nb_res_assumed"
#: Decimals stay exact: a float would lose the nanoseconds of times since 1970.
_DECODER = msgspec.json.Decoder(float_hook=Decimal)
#: The source of jobs that a scheduler registers during a run, for errors.
_SCHEDULER_SOURCE = Path("the scheduler")
_UTF8_BOM = b"\xef\xbb\xbf"


class BatsimDocument(NamedTuple):
    """A workload with the JSON descriptions of its jobs and profiles, which Batsim sends to schedulers."""

    workload: Workload
    #: In the order of the workload's jobs.
    job_descriptions: Sequence[Mapping[str, object]]
    profiles: Mapping[str, Profile]
    profile_descriptions: Mapping[str, Mapping[str, object]]


def read_batsim(path: Path, name: str) -> Workload:
    """Read the JSON file `path` as the workload `name`."""
    return read_batsim_document(path, name).workload


def parse_document(workload: Workload, text: str) -> BatsimDocument:
    """Return `workload` with its descriptions from the JSON `text`, which has the same jobs in the same order."""
    place = Place(Path(workload.source))
    document = require.mapping(place, _DECODER.decode(text))
    jobs = [require.mapping(place, raw) for raw in require.array(place, document["jobs"])]
    profiles = BatsimProfiles(place / "profiles", require.mapping(place, document["profiles"]))
    return BatsimDocument(workload, jobs, profiles.by_name, profiles.descriptions)


def read_batsim_document(path: Path, name: str, *, may_be_empty: bool = False) -> BatsimDocument:
    """Read the JSON file `path` as the workload `name`, and keep the descriptions of its jobs and profiles.

    It `may_be_empty` if the scheduler registers jobs during the run (Batsim: dynamic registration).
    """
    place = Place(path)
    document = require.mapping(place, _decode(path))
    profiles = BatsimProfiles(place / "profiles", require.mapping(place / "profiles", document.get("profiles")))
    raw_jobs = require.array(place / "jobs", document.get("jobs"))
    if not raw_jobs and not may_be_empty:
        (place / "jobs").reject("is empty, so there is nothing to run", "add at least one job")
    machines = document.get("nb_res")
    size_machines = None if machines is None else require.positive_integer(place / "nb_res", machines)
    if document.get(ASSUMED_SIZE_KEY) is True:
        size_machines = None
    reader = _BatsimJobs(place / "jobs", name, profiles)
    entries = [(reader.job(index, raw), require.mapping(place, raw)) for index, raw in enumerate(raw_jobs)]
    # Batsim submits by time and then by id as a text: "10" before "9" (job_comparator_subtime_number in jobs.cpp).
    entries.sort(key=lambda entry: (entry[0].submit, entry[0].name))
    history, unreadable = converted_steps(document.get(HISTORY_KEY))
    too_long = sum(job.walltime is None and raw.get("walltime") not in (None, -1) for job, raw in entries)
    workload = Workload(
        name=name,
        source=str(path),
        jobs=[job for job, _ in entries],
        size_machines=size_machines,
        notes=tuple((note, n) for note, n in ((WALLTIME_TOO_LONG, too_long), (UNREADABLE_STEP, unreadable)) if n),
        header=TraceHeader(history=history),
    )
    return BatsimDocument(workload, [raw for _, raw in entries], profiles.by_name, profiles.descriptions)


def read_registered_profile(
    name: str, description: Mapping[str, object], profiles: Mapping[str, Mapping[str, object]]
) -> Profile:
    """Parse a profile that a scheduler registers; it may be composed of other `profiles`."""
    raw: dict[str, object] = {}
    pending = [name]
    while pending:
        part = pending.pop()
        fields = description if part == name else profiles.get(part)
        if part in raw or fields is None:
            continue
        raw[part] = fields
        parts = fields.get("seq")
        pending += [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    return BatsimProfiles(Place(_SCHEDULER_SOURCE) / "profiles", raw).by_name[name]


def read_registered_job(key: str, description: Mapping[str, object], profile: Profile) -> Job:
    """Parse a job `workload!name` that a scheduler registers."""
    workload, _, name = key.partition("!")
    place = Place(_SCHEDULER_SOURCE) / "jobs" / name
    return Job(
        workload=workload,
        name=name,
        submit=Instant(require.duration(place / "subtime", description.get("subtime"))),
        size=require.positive_integer(place / "res", description.get("res")),
        profile=profile,
        walltime=_walltime(place / "walltime", description.get("walltime")),
        user=_user(place, description),
    )


def _decode(path: Path) -> object:
    data = read_bytes(path).removeprefix(_UTF8_BOM)
    if not data.strip():
        raise InputError(path, problem="is empty")
    try:
        return _DECODER.decode(data)
    except UnicodeDecodeError:
        raise InputError(path, at=f"line {_undecodable_line(data)}", problem="is not UTF-8 text") from None
    except msgspec.DecodeError as error:
        match = _BYTE_POSITION.search(str(error))
        position = int(match[1]) if match else len(data.rstrip())
        line = data.count(b"\n", 0, position) + 1
        raise InputError(
            path, at=f"line {line}", problem=f"is not JSON: {error}", remedy="check the file with a JSON formatter"
        ) from None
    except RecursionError:
        raise InputError(path, problem=f"is nested too deeply: {nesting_limit()}") from None


def _undecodable_line(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1
    return 1


class _BatsimJobs:
    """Reads jobs. It keeps their ids to detect duplicates, and their requests to share equal ones."""

    def __init__(self, place: Place, workload: str, profiles: BatsimProfiles) -> None:
        self._place = place
        self._workload = workload
        self._profiles = profiles
        self._index_of: dict[str, int] = {}
        self._shared: dict[Requests, Requests] = {}

    def job(self, index: int, raw: object) -> Job:
        """Return the job at `index` of the file."""
        place = self._place[index]
        fields = require.mapping(place, raw)
        profile, extension = self._profiles.lookup(fields.get("profile"), place / "profile")
        extension = self._extension(place, fields, extension)
        requests = extension.requests
        size = require.positive_integer(place / "res", fields.get("res"))
        return Job(
            workload=self._workload,
            name=self._name(place, index, fields.get("id")),
            submit=Instant(require.duration(place / "subtime", fields.get("subtime"))),
            size=size,
            profile=profile,
            walltime=_walltime(place / "walltime", fields.get("walltime")),
            requests=self._shared.setdefault(requests, requests),
            user=_user(place, fields),
            priority=extension.priority or 0,
            scheduler=extension.scheduler or "",
            queue=extension.queue or "",
            partition=extension.partition or "",
            gang=extension.gang_terms(place, size),
        )

    def _name(self, place: Place, index: int, raw: object) -> str:
        if isinstance(raw, bool) or not isinstance(raw, str | int):
            (place / "id").reject_type(raw, "a text or a whole number")
        # Batsim accepts `w0!3` as the id `3` in the workload w0.
        name = str(raw).removeprefix(f"{self._workload}!")
        if not name or "!" in name:
            (place / "id").reject(
                f"is {raw!r}, which is not an id", "write a text without '!', which separates workload and id"
            )
        _check_name(place / "id", name)
        first = self._index_of.setdefault(name, index)
        if first != index:
            (place / "id").reject(f"is {name!r}, as in {self._place[first].at}", "give each job a unique id")
        return name

    def _extension(self, place: Place, fields: Mapping[str, object], of_profile: Extension) -> Extension:
        if fields.keys() <= _BATSIM_JOB_KEYS:
            return of_profile
        return of_profile.overridden_by(read_extension(place, fields))


def _walltime(place: Place, raw: object) -> Duration | None:
    if raw is None or raw == -1:
        return None
    # Batsim's own test files have such walltimes; no run reaches them.
    if require.finite_number(place, raw) > LATEST_NS // NANOSECONDS_PER_SECOND:
        return None
    walltime = require.duration(place, raw) if require.finite_number(place, raw) > 0 else 0
    if walltime <= 0:
        place.reject(f"is {raw}, but must be positive", "omit it, or write -1, for no limit")
    return Duration(walltime)


def _user(place: Place, fields: Mapping[str, object]) -> str:
    user = fields.get("user", fields.get("user_id"))
    if user is None:
        return ""
    if isinstance(user, bool) or not isinstance(user, str | int):
        (place / "user").reject_type(user, "a text or a whole number")
    _check_name(place / "user", str(user))
    return str(user)


def _check_name(place: Place, name: str) -> None:
    if problem := names.name_problem(name):
        place.reject(problem, names.REMEDY)
