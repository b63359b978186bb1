"""What a profile is as a parallel task: who computes how much, and who sends how much to whom.

As Batsim makes its parallel tasks (Batsim 4.2.1, src/task_execution.cpp):

    parallel                      the vector and the matrix of the profile; row sends to column
    parallel_homogeneous          the same flops on each host, the same bytes between each two
    parallel_homogeneous_total    that, with both amounts divided by the number of hosts
    parallel_homogeneous_pfs      each host reads from one storage, and writes to it
    data_staging                  one storage sends to another; the hosts of the job do nothing
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from batkube.workloads.formats.batsim.profiles import batsim_type_of
from batkube.workloads.model import Parallel, ParallelHomogeneous, ParallelHomogeneousTotal, Profile, RawProfile

PFS, STAGING, SMPI = "parallel_homogeneous_pfs", "data_staging", "smpi"
#: The storage that a profile means which names none (Batsim: profiles.cpp).
_DEFAULT_STORAGE = "pfs"

StorageLookup = Callable[[str], str]
"""Gives the host that a label of a profile stands for. Raises UnsupportedProfile."""


class UnsupportedProfile(Exception):
    """The profile, or something in it, cannot be run yet; the text says what and why."""


class TaskShape(NamedTuple):
    """A parallel task before it is one."""

    hosts: Sequence[str]
    flops: Sequence[float]
    #: A matrix, row sends to column; empty when nobody sends.
    sent_bytes: Sequence[float]


def shape_of(profile: Profile, hosts: Sequence[str], storage: StorageLookup) -> TaskShape:
    """Return the parallel task of a profile with its rank i on `hosts[i]`. Raises UnsupportedProfile."""
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
            raise UnsupportedProfile("replays an SMPI trace, for which a real Batsim is needed (--engine batsim)")
        case RawProfile():
            raise UnsupportedProfile(f"is of type {profile.kind!r}, which is not modelled here")
        case _:
            raise UnsupportedProfile(f"is of type {batsim_type_of(profile)!r}, which is no parallel task")


def amount_of(fields: Mapping[str, object], key: str) -> float:
    """Return an amount that a profile gives, 0 when it gives none. Raises UnsupportedProfile."""
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
    # Batsim takes `host` for `storage`, of which it was the name.
    label = fields.get("storage", fields.get("host", _DEFAULT_STORAGE))
    whole = [*hosts, storage(str(label))]
    last = len(hosts)
    sent = [
        0.0 if (row == last) == (column == last) else (write if column == last else read)
        for row in range(len(whole))
        for column in range(len(whole))
    ]
    return TaskShape(whole, [0.0] * len(whole), sent if read or write else ())


def storage_lookup(storages: Sequence[str], mapping: Mapping[str, str] | None = None) -> StorageLookup:
    """Return who knows the storage of a label: as `mapping` says, by its own name, or because it is the only one."""

    def host_of(label: str) -> str:
        if mapping and label in mapping:
            return mapping[label]
        if label in storages:
            return label
        if len(storages) == 1 and not mapping:
            return storages[0]
        there = ", ".join(storages) or "none"
        raise UnsupportedProfile(f"uses the storage {label!r}, which is none of the platform's ({there})")

    return host_of
