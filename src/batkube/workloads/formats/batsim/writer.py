"""Write Batsim's workload JSON so that Batsim, the first Batkube and our own reader accept it.

If all jobs of a profile have the same requests and scheduler, these go on the profile, where the first Batkube expects
them; otherwise they go on the jobs. Times are exact. Each job and profile has its own line, which makes diffs readable.
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
from batkube.workloads.history import HISTORY_KEY, step_text
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
    common = _common_requests(workload, names, profiles.by_name)
    if workload.size_machines is not None:
        yield f'{{"nb_res": {workload.size_machines},\n'
    else:
        # Batsim requires nb_res; the size of the largest job is a lower bound.
        yield f'{{"nb_res": {max(job.size for job in workload.jobs)}, "{ASSUMED_SIZE_KEY}": true,\n'
    yield from _history_lines(workload)
    yield ' "jobs": [\n'
    last = len(workload.jobs) - 1
    for index, (job, name) in enumerate(zip(workload.jobs, names, strict=True)):
        yield f"  {_encode(_job_fields(job, name, common.get(name)))}{',' if index < last else ''}\n"
    yield ' ],\n "profiles": {\n'
    last = len(profiles.by_name) - 1
    for index, (name, profile) in enumerate(profiles.by_name.items()):
        fields = profiles.fields(profile)
        if name in common:
            fields.update(_request_fields(*common[name]))
        yield f"  {_encode(name)}: {_encode(fields)}{',' if index < last else ''}\n"
    yield " }\n}\n"


def _history_lines(workload: Workload) -> Iterator[str]:
    steps = [step_text(step) for step in workload.header.history]
    if steps:
        yield f' "{HISTORY_KEY}": [\n  ' + ",\n  ".join(steps) + "\n ],\n"


def to_batsim_document(workload: Workload) -> BatsimDocument:
    """Return a workload of any format with Batsim's descriptions; read them again if the source is Batsim JSON."""
    path = Path(workload.source)
    if path.suffix == ".json" and path.is_file():
        return read_batsim_document(path, workload.name)
    return parse_document(workload, "".join(batsim_text(workload)))


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _seconds(ns: int) -> msgspec.Raw:
    """Return an exact JSON number; a float would lose digits."""
    return msgspec.Raw(exact_seconds(ns).encode())


class _NamedProfiles:
    """Assigns a unique name to every profile, its own if possible."""

    def __init__(self) -> None:
        self.by_name: dict[str, Profile] = {}
        self._name_of: dict[int, str] = {}

    def name_of(self, profile: Profile) -> str:
        """Return the name under which `profile` is written; assign names to its parts, too."""
        assigned = self._name_of.get(id(profile))
        if assigned is not None:
            return assigned
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
    """Return the common requests and scheduler of each profile's jobs; omit profiles whose jobs differ or have none."""
    requests_of: dict[str, _ProfileRequests | None] = {}
    for job, name in zip(workload.jobs, names, strict=True):
        requests = (job.requests, job.scheduler)
        if requests_of.setdefault(name, requests) != requests:
            requests_of[name] = None
    nothing: _ProfileRequests = ((), "")
    return {
        name: requests
        for name, requests in requests_of.items()
        if requests is not None and requests != nothing and not _counts_flops(profiles[name])
    }


def _counts_flops(profile: Profile) -> bool:
    if isinstance(profile, RawProfile):
        return profile.kind in TYPES_WITH_FLOPS
    return isinstance(profile, Parallel | ParallelHomogeneous | ParallelHomogeneousTotal)


def _request_fields(requests: Requests, scheduler: str) -> Fields:
    return {**_amounts(requests), **({"scheduler": scheduler} if scheduler else {})}


def _amounts(requests: Requests) -> Fields:
    # cpu is a number of cores, so that the first Batkube can read it.
    return {name: _cores(amount) if name == CPU else format_amount(name, amount) for name, amount in requests}


def _cores(cpu_milli: int) -> int | float:
    return cpu_milli / 1000 if cpu_milli % 1000 else cpu_milli // 1000


def _job_fields(job: Job, profile: str, common: _ProfileRequests | None) -> Fields:
    fields: Fields = {"id": job.name, "subtime": _seconds(job.submit), "res": job.size, "profile": profile}
    if job.walltime is not None:
        fields["walltime"] = _seconds(job.walltime)
    if common is None:
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
