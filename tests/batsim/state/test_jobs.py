"""The registry of jobs and profiles: those of workload files, and those that the scheduler registers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from batkube.batsim.state.errors import BatsimAbort
from batkube.batsim.state.jobs import JobRegistry, JobState
from batkube.workloads.formats.batsim.documents import read_batsim_document

DELAY = {"type": "delay", "delay": 3}
PROFILES = {
    "one": DELAY,
    "two": DELAY,
    "both": {"type": "composed", "seq": ["one", "two"]},
    "unused": DELAY,
}


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """A workload of two jobs: one of a sequence, and one of its first part."""
    jobs = [{"id": name, "subtime": 0, "res": 1, "profile": profile} for name, profile in (("a", "both"), ("b", "one"))]
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": PROFILES}))
    return path


def registry_of(workload: Path, *, keeps_profiles: bool = False) -> JobRegistry:
    return JobRegistry({"w0": read_batsim_document(workload, "w0")}, keeps_profiles=keeps_profiles, workflows=["flow"])


@pytest.fixture
def registry(workload: Path) -> JobRegistry:
    return registry_of(workload)


def test_profiles_that_no_job_uses_are_removed_and_their_names_stay_taken(registry: JobRegistry) -> None:
    ((_, described), _) = registry.profile_descriptions()

    assert sorted(described) == ["both", "one", "two"]
    assert registry.profile("w0", "unused") is None
    with pytest.raises(BatsimAbort, match="profile 'unused' already existed in workload 'w0'"):
        registry.register_profile("w0", "unused", DELAY)


def test_jobs_are_found_by_their_id_with_the_workload(registry: JobRegistry) -> None:
    assert [live.id for live in registry.jobs_of("w0")] == ["w0!a", "w0!b"]
    assert registry.job("w0!b").description["id"] == "w0!b"
    with pytest.raises(BatsimAbort, match="Cannot get job 'w0!c': it does not exist"):
        registry.job("w0!c")


@pytest.mark.parametrize("job_id", ["a", "w0!a!b"])
def test_an_id_has_two_parts(job_id: str, registry: JobRegistry) -> None:
    with pytest.raises(BatsimAbort, match="should be formatted as two '!'-separated parts"):
        registry.is_registered(job_id)


def test_a_registered_job_is_submitted(registry: JobRegistry) -> None:
    registry.register_profile("dyn", "p", DELAY)

    live = registry.register_job("dyn!1", {"id": "1", "subtime": 0, "res": 2, "profile": "p"})

    assert (live.state, live.job.size, live.job.profile.name) == (JobState.SUBMITTED, 2, "p")
    assert registry.is_registered("dyn!1")


@pytest.mark.parametrize(
    ("job_id", "changes", "problem"),
    [
        ("w0!a", {"id": "a"}, "already exists in the workload"),
        ("new!1", {}, "Workload 'new' should exist"),
        ("w0!1", {"id": None}, "one job has no 'id' field"),
        ("w0!1", {"id": "2"}, "the 'id' of the job is '2', and its 'job_id' 'w0!1'"),
        ("w0!1", {"subtime": None}, "has no 'subtime' field"),
        ("w0!1", {"profile": "none"}, "the profile none for job w0!1 does not exist"),
        ("w0!1", {"res": -1}, "Invalid JSON job submitted by the scheduler"),
    ],
)
def test_invalid_registrations_are_rejected(
    job_id: str, changes: Mapping[str, Any], problem: str, registry: JobRegistry
) -> None:
    description = {"id": "1", "subtime": 0, "res": 1, "profile": "one", **changes}

    with pytest.raises(BatsimAbort, match=problem):
        registry.register_job(job_id, {key: value for key, value in description.items() if value is not None})


def test_the_profile_of_a_deleted_job_is_removed_with_its_parts_even_if_others_use_them(registry: JobRegistry) -> None:
    registry.delete("w0!a")

    assert [registry.profile("w0", name) for name in ("both", "one", "two")] == [None] * 3
    assert registry.is_registered("w0!a")
    assert registry.job("w0!b").job.profile.name == "one"


def test_profiles_are_kept_for_new_jobs_with_profile_reuse(workload: Path) -> None:
    registry = registry_of(workload, keeps_profiles=True)
    registry.delete("w0!b")

    live = registry.register_job("w0!1", {"id": "1", "subtime": 0, "res": 1, "profile": "one"})

    assert live.job.profile.name == "one"


def test_an_additional_io_job_has_an_existing_profile_or_a_new_one(registry: JobRegistry) -> None:
    live = registry.job("w0!b")

    assert registry.io_profile(live, "two", None).name == "two"
    assert registry.io_profile(live, "io", DELAY) is registry.profile("w0", "io")
    with pytest.raises(BatsimAbort, match="'two' already exists"):
        registry.io_profile(live, "two", DELAY)
    with pytest.raises(BatsimAbort, match="'missing' does not exist"):
        registry.io_profile(live, "missing", None)


def test_traces_cannot_be_registered(registry: JobRegistry) -> None:
    with pytest.raises(BatsimAbort, match="from another source than a file workload"):
        registry.register_profile("dyn", "p", {"type": "usage_trace", "trace": "t"})
