"""Read Batsim workloads: order, profiles, extensions and invalid files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import published
from batkube.kernel.errors import InputError
from batkube.kernel.instants import seconds
from batkube.workloads.formats.batsim.documents import WALLTIME_TOO_LONG
from batkube.workloads.model import (
    WHOLE_GANG,
    Composed,
    Delay,
    GangTerms,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    RawProfile,
    Workload,
)
from batkube.workloads.reader import read_workload

Fields = dict[str, Any]
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a workload with these jobs and profiles."""

    def write_document(jobs: object = None, profiles: object = None, **more: object) -> Path:
        document = {
            "nb_res": 4,
            "jobs": [job()] if jobs is None else jobs,
            "profiles": {"d": {"type": "delay", "delay": 10}} if profiles is None else profiles,
            **more,
        }
        path = tmp_path / "workload.json"
        path.write_text(json.dumps({key: value for key, value in document.items() if value != "absent"}))
        return path

    return write_document


def job(**fields: object) -> Fields:
    """Return a valid job with some fields changed; the value "absent" removes one."""
    all_fields = {"id": "1", "subtime": 0, "res": 1, "profile": "d", **fields}
    return {key: value for key, value in all_fields.items() if value != "absent"}


def read_profile(write: Write, **fields: object) -> Profile:
    return read_workload(write([job(profile="p")], {"p": fields})).jobs[0].profile


def test_a_job_has_the_values_of_the_file(write: Write) -> None:
    path = write([job(id=7, subtime=1.5, res=3, walltime=100, user_id=12)])

    workload = read_workload(path, "w5")

    (read,) = workload.jobs
    assert (read.key, read.submit, read.size, read.walltime) == ("w5!7", seconds("1.5"), 3, seconds(100))
    assert read.profile == Delay(name="d", duration=seconds(10))
    assert (read.user, read.requests, read.priority, read.scheduler) == ("12", (), 0, "")
    assert (workload.name, workload.size_machines, workload.source) == ("w5", 4, str(path))


def test_jobs_are_submitted_by_time_and_then_by_id_as_text(write: Write) -> None:
    jobs = [job(id=i, subtime=t) for i, t in ((9, 5), (10, 5), (1, 7), (2, 0))]

    assert [read.name for read in read_workload(write(jobs)).jobs] == ["2", "10", "9", "1"]


def test_jobs_of_one_profile_share_one_object(write: Write) -> None:
    jobs = read_workload(write([job(id=i) for i in range(3)])).jobs

    assert jobs[0].profile is jobs[1].profile is jobs[2].profile


def test_decimals_are_read_exactly(write: Write, tmp_path: Path) -> None:
    # 1.6e9 seconds with nanoseconds have more digits than a float holds.
    path = tmp_path / "exact.json"
    path.write_text(write().read_text().replace('"subtime": 0', '"subtime": 1641021254.123456789'))

    assert read_workload(path).jobs[0].submit == 1_641_021_254_123_456_789


@pytest.mark.parametrize("walltime", ["absent", -1, -1.0, None])
def test_a_job_without_walltime_has_no_time_limit(write: Write, walltime: object) -> None:
    assert read_workload(write([job(walltime=walltime)])).jobs[0].walltime is None


def test_an_id_may_have_the_name_of_its_workload_as_prefix(write: Write) -> None:
    assert read_workload(write([job(id="w0!3")]), "w0").jobs[0].key == "w0!3"


def test_the_machine_size_is_optional(write: Write) -> None:
    assert read_workload(write(nb_res="absent")).size_machines is None


class TestProfiles:
    def test_parallel_profiles_of_all_kinds_are_read(self, write: Write) -> None:
        task = read_profile(write, type="parallel", cpu=[1e9, 2e9], com=[0, 1, 2, 3])
        assert task == Parallel(name="p", cpu_flops=(1e9, 2e9), com_bytes=(0, 1, 2, 3))

        even = read_profile(write, type="parallel_homogeneous", cpu=1e9, com=5)
        assert even == ParallelHomogeneous(name="p", cpu_flops=1e9, com_bytes=5)

        total = read_profile(write, type="parallel_homogeneous_total", cpu=1e9, ret=3)
        assert total == ParallelHomogeneousTotal(name="p", cpu_flops=1e9, com_bytes=0, ret=3)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ({"type": "msg_par", "cpu": [1.0], "com": [0.0]}, {"type": "parallel", "cpu": [1.0], "com": [0.0]}),
            ({"type": "msg_par_hg", "cpu": 1, "com": 2}, {"type": "parallel_homogeneous", "cpu": 1, "com": 2}),
            (
                {"type": "msg_par_hg_tot", "cpu": 1, "com": 2},
                {"type": "parallel_homogeneous_total", "cpu": 1, "com": 2},
            ),
            ({"type": "msg_par_hg_pfs", "size": 5}, {"type": "parallel_homogeneous_pfs", "size": 5}),
        ],
    )
    def test_profile_types_of_earlier_batsim_versions_are_accepted(
        self, write: Write, old: Fields, new: Fields
    ) -> None:
        assert read_profile(write, **old) == read_profile(write, **new)

    def test_a_composed_profile_contains_the_profiles_of_its_sequence(self, write: Write) -> None:
        profiles = {
            "outer": {"type": "composed", "repeat": 2, "seq": ["inner", "d"]},
            "inner": {"type": "composed", "nb": 3, "seq": ["d"]},
            "d": {"type": "delay", "delay": 1},
        }

        jobs = read_workload(write([job(id=1, profile="outer"), job(id=2, profile="d")], profiles)).jobs

        outer, delay = jobs[0].profile, jobs[1].profile
        assert isinstance(outer, Composed)
        assert outer == Composed(
            name="outer", repeat=2, parts=(Composed(name="inner", repeat=3, parts=(delay,)), delay)
        )
        assert outer.parts[1] is delay

    @pytest.mark.parametrize(
        "fields",
        [
            {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1e8, "storage": "pfs0"},
            {"type": "data_staging", "nb_bytes": 10, "from": "a", "to": "b"},
            {"type": "smpi", "trace": "traces.txt"},
            {"type": "usage_trace", "trace": "traces.txt"},
        ],
    )
    def test_unsupported_profiles_are_kept_as_read(self, write: Write, fields: Fields) -> None:
        raw_fields = {key: value for key, value in fields.items() if key != "type"}

        assert read_profile(write, **fields) == RawProfile(name="p", kind=fields["type"], fields=raw_fields)

    @pytest.mark.parametrize(
        ("profiles", "at", "part"),
        [
            ({"p": {"type": "dely", "delay": 1}}, "profiles.p.type", "which is not a profile type"),
            ({"p": {"delay": 1}}, "profiles.p.type", "missing"),
            ({"p": 5}, "profiles.p", "not an object"),
            ({"p": {"type": "delay"}}, "profiles.p.delay", "missing"),
            ({"p": {"type": "delay", "delay": -1}}, "profiles.p.delay", "negative"),
            ({"p": {"type": "delay", "delay": "10"}}, "profiles.p.delay", "not a finite number"),
            ({"p": {"type": "delay", "delay": 1e30}}, "profiles.p.delay", "292 years"),
            ({"p": {"type": "delay", "delay": True}}, "profiles.p.delay", "not a finite number"),
            ({"p": {"type": "delay", "delay": 1, "ret": 1.5}}, "profiles.p.ret", "not a whole number"),
            ({"p": {"type": "parallel", "com": [1]}}, "profiles.p.cpu", "missing or empty"),
            ({"p": {"type": "parallel", "cpu": [1, 2], "com": [1]}}, "profiles.p.com", "has 1 values"),
            ({"p": {"type": "parallel", "cpu": [1, -2]}}, "profiles.p.cpu[1]", "negative"),
            ({"p": {"type": "composed"}}, "profiles.p.seq", "missing"),
            ({"p": {"type": "composed", "seq": []}}, "profiles.p.seq", "empty"),
            ({"p": {"type": "composed", "seq": ["q"]}}, "profiles.p.seq[0]", "not defined"),
            ({"p": {"type": "composed", "seq": ["p"]}}, "profiles.p", "p → p"),
            (
                {"p": {"type": "composed", "seq": ["q"]}, "q": {"type": "composed", "seq": ["p"]}},
                "profiles.p",
                "p → q → p",
            ),
            ({"p": {"type": "delay", "delay": 1, "cpu": "1x"}}, "profiles.p.cpu", "quantity"),
            ({"p": {"type": "delay", "delay": 1, "memory": None}}, "profiles.p.memory", "is missing"),
            ({"p": {"type": "delay", "delay": 1, "gpu": -1}}, "profiles.p.gpu", "negative"),
            ({"p": {"type": "delay", "delay": 1, "priority": "high"}}, "profiles.p.priority", "number"),
            ({"p": {"type": "delay", "delay": 1, "scheduler": 3}}, "profiles.p.scheduler", "not a text"),
        ],
    )
    def test_an_invalid_profile_is_rejected_with_its_place(
        self, write: Write, profiles: Fields, at: str, part: str
    ) -> None:
        with pytest.raises(InputError, match=part) as error:
            read_workload(write([job(profile="p")], profiles))

        assert error.value.at == at

    def test_zero_repetitions_of_a_profile_are_rejected(self, write: Write) -> None:
        profiles = {"p": {"type": "composed", "seq": ["d"], "repeat": 0}, "d": {"type": "delay", "delay": 1}}

        with pytest.raises(InputError, match="at least 1") as error:
            read_workload(write([job(profile="p")], profiles))

        assert error.value.at == "profiles.p.repeat"

    def test_too_deep_nesting_is_rejected(self, write: Write) -> None:
        profiles = {f"p{i}": {"type": "composed", "seq": [f"p{i + 1}"]} for i in range(5000)}
        profiles["p5000"] = {"type": "delay", "delay": 1}  # type: ignore[dict-item]

        with pytest.raises(InputError, match="deep"):
            read_workload(write([job(profile="p0")], profiles))


class TestExtensions:
    def test_requests_and_scheduler_may_be_on_the_profile(self, write: Write) -> None:
        fields = {
            "cpu": "1500m",
            "memory": "4Gi",
            "gpu": 2,
            "example.com/fpga": 1,
            "scheduler": "default",
            "priority": 5,
        }

        (read,) = read_workload(write(profiles={"d": {"type": "delay", "delay": 1, **fields}})).jobs

        assert read.requests == (("cpu", 1500), ("example.com/fpga", 1), ("memory", 4 << 30), ("nvidia.com/gpu", 2))
        assert (read.scheduler, read.priority) == ("default", 5)

    @pytest.mark.parametrize("cpu", [0.188, "0.188", "188m"])
    def test_cpu_is_cores_or_a_quantity(self, write: Write, cpu: object) -> None:
        (read,) = read_workload(write(profiles={"d": {"type": "delay", "delay": 1, "cpu": cpu}})).jobs

        assert read.requests == (("cpu", 188),)

    def test_a_job_overrides_its_profile_key_by_key(self, write: Write) -> None:
        profiles = {"d": {"type": "delay", "delay": 1, "cpu": 1, "memory": "1Gi", "scheduler": "a", "priority": 1}}
        jobs = [job(id=1, cpu=2, scheduler="b"), job(id=2, priority=9, gpu=1), job(id=3)]

        first, second, third = read_workload(write(jobs, profiles)).jobs

        assert (first.requests, first.scheduler, first.priority) == ((("cpu", 2000), ("memory", 1 << 30)), "b", 1)
        assert second.requests == (("cpu", 1000), ("memory", 1 << 30), ("nvidia.com/gpu", 1))
        assert (second.scheduler, second.priority) == ("a", 9)
        assert third.requests == (("cpu", 1000), ("memory", 1 << 30))

    def test_cpu_of_a_parallel_profile_is_flops_and_no_request(self, write: Write) -> None:
        profiles = {"d": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0, "memory": "1Gi"}}

        first, second = read_workload(write([job(id=1), job(id=2, cpu=1)], profiles)).jobs

        assert first.requests == (("memory", 1 << 30),)
        assert second.requests == (("cpu", 1000), ("memory", 1 << 30))


class TestGangs:
    def test_pod_group_fields_may_be_on_the_job_or_on_its_profile(self, write: Write) -> None:
        profiles = {"d": {"type": "delay", "delay": 1, "cpu": "500m", "memory": "1Gi", "min_resources": True}}
        jobs = [job(id=1, res=4), job(id=2, res=4, min_member=3), job(id=3, res=4, min_resources={"cpu": 1})]
        jobs += [job(id=4, res=4, min_resources=False)]

        terms = [job.gang for job in read_workload(write(jobs, profiles)).jobs]

        assert terms == [
            GangTerms(0, (("cpu", 2000), ("memory", 4 << 30))),
            GangTerms(3, (("cpu", 1500), ("memory", 3 << 30))),
            GangTerms(0, (("cpu", 1000),)),
            WHOLE_GANG,
        ]


@pytest.mark.parametrize(
    ("fields", "at", "part"),
    [
        ({"id": "absent"}, "jobs[1].id", "is missing$"),
        ({"id": 1.5}, "jobs[1].id", "not a text or a whole number"),
        ({"id": True}, "jobs[1].id", "not a text or"),
        ({"id": ""}, "jobs[1].id", "which is not an id"),
        ({"id": "w1!3"}, "jobs[1].id", "without '!'"),
        ({"id": 0}, "jobs[1].id", r"'0', as in jobs\[0\]"),
        ({"subtime": "absent"}, "jobs[1].subtime", "is missing$"),
        ({"subtime": -1}, "jobs[1].subtime", "negative"),
        ({"subtime": "0"}, "jobs[1].subtime", "not a finite number"),
        ({"subtime": 1e13}, "jobs[1].subtime", "292 years"),
        ({"res": "absent"}, "jobs[1].res", "is missing$"),
        ({"res": "two"}, "jobs[1].res", "is 'two', which is not a whole number"),
        ({"res": 0}, "jobs[1].res", "at least 1"),
        ({"res": -4}, "jobs[1].res", "at least 1"),
        ({"res": 1.5}, "jobs[1].res", "not a whole number"),
        ({"walltime": 0}, "jobs[1].walltime", "must be positive"),
        ({"walltime": -5}, "jobs[1].walltime", "must be positive"),
        ({"walltime": "10"}, "jobs[1].walltime", "not a finite number"),
        ({"profile": "absent"}, "jobs[1].profile", "missing"),
        ({"profile": "e"}, "jobs[1].profile", "'e', which is not defined"),
        ({"profile": 3}, "jobs[1].profile", "not defined"),
        ({"user": []}, "jobs[1].user", "not a text or"),
        ({"cpu": "x"}, "jobs[1].cpu", "not a quantity"),
        ({"example.com/fpga": {}}, "jobs[1].example.com/fpga", "not a quantity"),
        ({"res": 3, "min_member": 4}, "jobs[1].min_member", "is 4, more than the job's 3 pods"),
        ({"min_member": 0}, "jobs[1].min_member", "at least 1"),
        ({"min_resources": True}, "jobs[1].min_resources", "the job's pods have no requests"),
        ({"min_resources": 4}, "jobs[1].min_resources", "not true or an object of amounts"),
        ({"min_resources": {"cores": 4}}, "jobs[1].min_resources.cores", "is not a resource"),
        ({"min_resources": {"cpu": "x"}}, "jobs[1].min_resources.cpu", "not a quantity"),
    ],
)
def test_an_invalid_job_is_rejected_with_its_place(write: Write, fields: Fields, at: str, part: str) -> None:
    with pytest.raises(InputError, match=part) as error:
        read_workload(write([job(id="0"), job(**fields)]))

    assert error.value.at == at


def test_an_unknown_profile_is_rejected_with_examples_of_existing_ones(write: Write) -> None:
    profiles = {f"delay{i}": {"type": "delay", "delay": i} for i in range(20)}

    with pytest.raises(InputError) as error:
        read_workload(write([job(profile="delay_1")], profiles))

    assert error.value.remedy is not None
    assert error.value.remedy.startswith("define it, or use one of the defined profiles: delay0, delay1,")
    assert error.value.remedy.endswith("…")


@pytest.mark.parametrize(
    ("more", "at", "part"),
    [
        ({"jobs": []}, "jobs", "nothing to run"),
        ({"jobs": {}}, "jobs", "not a list"),
        ({"jobs": [7]}, "jobs[0]", "not an object"),
        ({"jobs": "absent"}, "jobs", "is missing$"),
        ({"profiles": "absent"}, "profiles", "is missing$"),
        ({"profiles": []}, "profiles", "not an object"),
        ({"nb_res": 0}, "nb_res", "at least 1"),
        ({"nb_res": "4"}, "nb_res", "not a whole number"),
    ],
)
def test_an_invalid_document_is_rejected_with_its_place(write: Write, more: Fields, at: str, part: str) -> None:
    with pytest.raises(InputError, match=part) as error:
        read_workload(write(**more))

    assert error.value.at == at


@pytest.mark.parametrize(
    ("content", "at", "part"),
    [
        (b"", None, "is empty"),
        (b" \n ", None, "is empty"),
        (b'{"nb_res": 4,\n"jobs": [,]}', "line 2", "not JSON"),
        (b'{"nb_res": 4,\n"jobs": [\n', "line 2", "not JSON"),
        (b'{"nb_res": NaN}', "line 1", "not JSON"),
        (b'{"nb_res":\n\n "\xff"}', "line 3", "not UTF-8"),
        (b"[1, 2]", None, "not an object"),
        (b"[" * 100_000, None, "nested too deeply"),
    ],
)
def test_invalid_json_is_rejected_with_its_line(tmp_path: Path, content: bytes, at: str | None, part: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)

    with pytest.raises(InputError, match=part) as error:
        read_workload(path)

    assert error.value.at == at


def test_a_byte_order_mark_is_accepted(write: Write) -> None:
    path = write()
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    assert len(read_workload(path).jobs) == 1


def test_every_workload_of_batsims_own_tests_is_read(shared_data: Path) -> None:
    # Two files have submissions beyond the longest run, 292 years, and are rejected.
    beyond = {"test_long_workload.json", "test_smpi_mapping.json"}
    paths = sorted((shared_data / "batsim" / "workloads").rglob("*.json"))
    assert len(paths) >= 25

    for path in paths:
        if path.name in beyond:
            with pytest.raises(InputError, match=r"subtime: .* 292 years"):
                read_workload(path)
        else:
            assert len(read_workload(path).jobs) == len(json.loads(path.read_text())["jobs"])


def test_a_walltime_beyond_the_longest_run_is_ignored_with_a_note(write: Write) -> None:
    path = write()
    document = json.loads(path.read_text())
    document["jobs"][0]["walltime"] = 1e20
    path.write_text(json.dumps(document))

    workload = read_workload(path)

    assert workload.jobs[0].walltime is None
    assert workload.notes == ((WALLTIME_TOO_LONG, 1),)


def test_the_published_burst_is_read(tmp_path: Path) -> None:
    workload: Workload = read_workload(published.burst(tmp_path))

    assert len(workload.jobs) == 200
    assert {(job.submit, job.size, job.walltime, job.requests) for job in workload.jobs} == {
        (0, 1, seconds(1000), (("cpu", 1000),))
    }
    assert {job.profile for job in workload.jobs} == {Delay(name="delay", duration=seconds(170))}
