"""Writing Batsim's workload JSON, so that Batsim, the first Batkube and our own reader all understand it.

Requests and scheduler go on the profile where all its jobs agree on them, which is where the first Batkube looks, and
on the jobs otherwise. Times are written with every digit. One job and one profile per line, for diffs and for eyes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from batkube.kernel.quantities import CPU, format_amount
from batkube.workloads.delay_profiles import exact_seconds
from batkube.workloads.formats.batsim.documents import (
    ASSUMED_SIZE_KEY,
    BatsimDocument,
    parse_document,
    read_batsim_document,
)
from batkube.workloads.formats.batsim.profiles import COMPOSED, DELAY, HOMOGENEOUS, PARALLEL, TOTAL, TYPES_WITH_FLOPS
from batkube.workloads.model import (
    Composed,
    Delay,
    Job,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    RawProfile,
    Requests,
    Workload,
)

Fields = dict[str, object]
_ProfileRequests = tuple[Requests, str]


def batsim_text(workload: Workload) -> Iterator[str]:
    """Yield the JSON text of `workload`, line by line."""
    profiles = _NamedProfiles()
    names = [profiles.name_of(job.profile) for job in workload.jobs]
    agreed = _common_requests(workload, names, profiles.by_name)
    if workload.size_machines is not None:
        yield f'{{"nb_res": {workload.size_machines},\n "jobs": [\n'
    else:
        # Batsim insists on nb_res; the largest job tells the least it can be.
        yield f'{{"nb_res": {max(job.size for job in workload.jobs)}, "{ASSUMED_SIZE_KEY}": true,\n "jobs": [\n'
    last = len(workload.jobs) - 1
    for index, (job, name) in enumerate(zip(workload.jobs, names, strict=True)):
        yield f"  {_encode(_job_fields(job, name, agreed.get(name)))}{',' if index < last else ''}\n"
    yield ' ],\n "profiles": {\n'
    last = len(profiles.by_name) - 1
    for index, (name, profile) in enumerate(profiles.by_name.items()):
        fields = profiles.fields(profile)
        if name in agreed:
            fields.update(_request_fields(*agreed[name]))
        yield f"  {_encode(name)}: {_encode(fields)}{',' if index < last else ''}\n"
    yield " }\n}\n"


def to_batsim_document(workload: Workload) -> BatsimDocument:
    """Return a workload of whatever format as Batsim has it; one of Batsim's own is read again, with all it says."""
    path = Path(workload.source)
    if path.suffix == ".json" and path.is_file():
        return read_batsim_document(path, workload.name)
    return parse_document(workload, "".join(batsim_text(workload)))


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _seconds(ns: int) -> msgspec.Raw:
    """Return a JSON number with all its digits, which a float would lose."""
    return msgspec.Raw(exact_seconds(ns).encode())


class _NamedProfiles:
    """Gives every profile a name of its own, which it keeps where it can."""

    def __init__(self) -> None:
        self.by_name: dict[str, Profile] = {}
        self._name_of: dict[int, str] = {}

    def name_of(self, profile: Profile) -> str:
        """Return the name under which `profile` is written; its parts are named with it."""
        known = self._name_of.get(id(profile))
        if known is not None:
            return known
        if isinstance(profile, Composed):
            for part in profile.parts:
                self.name_of(part)
        name, number = profile.name, 1
        while name in self.by_name and self.by_name[name] != profile:
            number += 1
            name = f"{profile.name}_{number}"
        self.by_name.setdefault(name, profile)
        self._name_of[id(profile)] = name
        return name

    def fields(self, profile: Profile) -> Fields:
        """Return the JSON object of `profile`."""
        fields = self._own_fields(profile)
        if profile.ret:
            fields["ret"] = profile.ret
        return fields

    def _own_fields(self, profile: Profile) -> Fields:
        match profile:
            case Delay():
                return {"type": DELAY, "delay": _seconds(profile.duration)}
            case Parallel():
                com = {"com": profile.com_bytes} if profile.com_bytes else {}
                return {"type": PARALLEL, "cpu": profile.cpu_flops, **com}
            case ParallelHomogeneous():
                return {"type": HOMOGENEOUS, "cpu": profile.cpu_flops, "com": profile.com_bytes}
            case ParallelHomogeneousTotal():
                return {"type": TOTAL, "cpu": profile.cpu_flops, "com": profile.com_bytes}
            case Composed():
                seq = [self.name_of(part) for part in profile.parts]
                return {"type": COMPOSED, "repeat": profile.repeat, "seq": seq}
            case RawProfile():
                return {"type": profile.kind, **profile.fields}
        raise AssertionError(f"a profile of class {type(profile).__name__}")


def _common_requests(workload: Workload, names: list[str], profiles: dict[str, Profile]) -> dict[str, _ProfileRequests]:
    """Return, by profile, what all of its jobs ask for; without the profiles whose jobs differ or ask for nothing."""
    asks_of: dict[str, _ProfileRequests | None] = {}
    for job, name in zip(workload.jobs, names, strict=True):
        asks = (job.requests, job.scheduler)
        if asks_of.setdefault(name, asks) != asks:
            asks_of[name] = None
    nothing: _ProfileRequests = ((), "")
    return {
        name: asks
        for name, asks in asks_of.items()
        if asks is not None and asks != nothing and not _counts_flops(profiles[name])
    }


def _counts_flops(profile: Profile) -> bool:
    if isinstance(profile, RawProfile):
        return profile.kind in TYPES_WITH_FLOPS
    return isinstance(profile, Parallel | ParallelHomogeneous | ParallelHomogeneousTotal)


def _request_fields(requests: Requests, scheduler: str) -> Fields:
    return {**_amounts(requests), **({"scheduler": scheduler} if scheduler else {})}


def _amounts(requests: Requests) -> Fields:
    # cpu as a number of cores, which the first Batkube reads too.
    return {name: _cores(amount) if name == CPU else format_amount(name, amount) for name, amount in requests}


def _cores(cpu_milli: int) -> int | float:
    return cpu_milli / 1000 if cpu_milli % 1000 else cpu_milli // 1000


def _job_fields(job: Job, profile: str, agreed: _ProfileRequests | None) -> Fields:
    fields: Fields = {"id": job.name, "subtime": _seconds(job.submit), "res": job.size, "profile": profile}
    if job.walltime is not None:
        fields["walltime"] = _seconds(job.walltime)
    if agreed is None:
        fields.update(_request_fields(job.requests, job.scheduler))
    if job.user:
        fields["user"] = job.user
    if job.priority:
        fields["priority"] = job.priority
    if job.queue:
        fields["queue"] = job.queue
    if job.partition:
        fields["partition"] = job.partition
    if job.gang.min_member:
        fields["min_member"] = job.gang.min_member
    if job.gang.min_resources:
        fields["min_resources"] = _amounts(job.gang.min_resources)
    return fields
