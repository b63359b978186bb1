"""Converts profiles into parallel tasks: the flops of each host, and the bytes between each two hosts.

Parallel tasks are built as in Batsim (Batsim 4.2.1, src/task_execution.cpp):

    parallel                      the vector and the matrix of the profile; row sends to column
    parallel_homogeneous          the same flops on each host, the same bytes between each two
    parallel_homogeneous_total    the same, with both amounts divided by the number of hosts
    parallel_homogeneous_pfs      each host reads from one storage, and writes to it
    data_staging                  one storage sends to another; the hosts of the job are not used
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from batkube.workloads.formats.batsim.profiles import batsim_type_of
from batkube.workloads.model import Parallel, ParallelHomogeneous, ParallelHomogeneousTotal, Profile, RawProfile

PFS, STAGING, SMPI = "parallel_homogeneous_pfs", "data_staging", "smpi"
#: The storage of a profile that names none (Batsim: profiles.cpp).
_DEFAULT_STORAGE = "pfs"

StorageLookup = Callable[[str], str]
"""Returns the host of a storage label. Raises UnsupportedProfile."""


class UnsupportedProfile(Exception):
    """The profile, or a part of it, is not supported; the message says why."""


class TaskShape(NamedTuple):
    """The parameters of a parallel task."""

    hosts: Sequence[str]
    flops: Sequence[float]
    #: A matrix, row sends to column; empty without communication.
    sent_bytes: Sequence[float]


def shape_of(profile: Profile, hosts: Sequence[str], storage: StorageLookup) -> TaskShape:
    """Return the parallel task of a profile with rank i on `hosts[i]`. Raise UnsupportedProfile."""
    count = len(hosts)
    match profile:
        case Parallel():
            if len(profile.cpu_flops) != count:
                raise UnsupportedProfile(f"has {len(profile.cpu_flops)} tasks for {count} machines")
            return TaskShape(hosts, profile.cpu_flops, profile.com_bytes if any(profile.com_bytes) else ())
        case ParallelHomogeneous():
            return TaskShape(hosts, [profile.cpu_flops] * count, _all_to_all(count, profile.com_bytes))
        case ParallelHomogeneousTotal():
            share = profile.com_bytes / count
            return TaskShape(hosts, [profile.cpu_flops / count] * count, _all_to_all(count, share))
        case RawProfile(kind=kind) if kind == PFS:
            return _with_storage(profile.fields, hosts, storage)
        case RawProfile(kind=kind) if kind == STAGING:
            ends = [storage(str(profile.fields.get(key, ""))) for key in ("from", "to")]
            return TaskShape(ends, [0.0, 0.0], [0.0, amount_of(profile.fields, "nb_bytes"), 0.0, 0.0])
        case RawProfile(kind=kind) if kind == SMPI:
            raise UnsupportedProfile("replays an SMPI trace, which needs a real Batsim (--engine batsim)")
        case RawProfile():
            raise UnsupportedProfile(f"is of type {profile.kind!r}, which is not modelled here")
        case _:
            raise UnsupportedProfile(f"is of type {batsim_type_of(profile)!r}, which is not a parallel task")


def amount_of(fields: Mapping[str, object], key: str) -> float:
    """Return an amount of a profile, 0 if it is missing. Raise UnsupportedProfile."""
    value = fields.get(key, 0)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise UnsupportedProfile(f"has {value!r} for {key!r}, which is not an amount")
    return float(value)


def _all_to_all(count: int, amount: float) -> Sequence[float]:
    if amount <= 0:
        return ()
    return [0.0 if row == column else amount for row in range(count) for column in range(count)]


def _with_storage(fields: Mapping[str, object], hosts: Sequence[str], storage: StorageLookup) -> TaskShape:
    read, write = amount_of(fields, "bytes_to_read"), amount_of(fields, "bytes_to_write")
    # Batsim accepts `host`, the former name of `storage`.
    label = fields.get("storage", fields.get("host", _DEFAULT_STORAGE))
    all_hosts = [*hosts, storage(str(label))]
    last = len(hosts)
    sent = [
        0.0 if (row == last) == (column == last) else (write if column == last else read)
        for row in range(len(all_hosts))
        for column in range(len(all_hosts))
    ]
    return TaskShape(all_hosts, [0.0] * len(all_hosts), sent if read or write else ())


def storage_lookup(storages: Sequence[str], mapping: Mapping[str, str] | None = None) -> StorageLookup:
    """Return a lookup of storages: by `mapping`, by the storage's name, or the only one of the platform."""

    def host_of(label: str) -> str:
        if mapping and label in mapping:
            return mapping[label]
        if label in storages:
            return label
        if len(storages) == 1 and not mapping:
            return storages[0]
        names = ", ".join(storages) or "none"
        raise UnsupportedProfile(f"uses storage {label!r}, which is not a storage of the platform ({names})")

    return host_of
