"""Written workloads read back unchanged, and files are written completely or not at all."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration, Instant, seconds
from batkube.workloads.delay_profiles import DelayProfiles, exact_seconds
from batkube.workloads.model import (
    Composed,
    Delay,
    GangTerms,
    Job,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    RawProfile,
    Workload,
)
from batkube.workloads.reader import read_workload
from batkube.workloads.writer import write_workload

MakeWorkload = Callable[..., Workload]

times = st.integers(0, 2 * 10**18)  # up to 63 years, with every nanosecond
lengths = st.integers(1, 10**17)
floats = st.floats(0, 1e15)
names = st.text('abcXYZ019_-. é"\\', min_size=1, max_size=8)
simple_profiles = st.one_of(
    st.builds(lambda ns, ret: Delay(name="", duration=Duration(ns), ret=ret), times, st.integers(0, 3)),
    st.builds(
        lambda cpu, com: Parallel(name="", cpu_flops=tuple(cpu), com_bytes=tuple(com)),
        st.lists(floats, min_size=2, max_size=2),
        st.lists(floats, min_size=4, max_size=4),
    ),
    st.builds(lambda cpu, com: ParallelHomogeneous(name="", cpu_flops=cpu, com_bytes=com), floats, floats),
    st.builds(lambda cpu, com: ParallelHomogeneousTotal(name="", cpu_flops=cpu, com_bytes=com), floats, floats),
    st.builds(lambda size: RawProfile(name="", kind="data_staging", fields={"nb_bytes": size, "from": "a"}), floats),
)
requests = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "example.com/fpga", "ephemeral-storage"]), st.integers(0, 2**50)
).map(lambda amounts: tuple(sorted(amounts.items())))


@st.composite
def any_workload(draw: st.DrawFn) -> Workload:
    """Workloads with every kind of profile, extension and unusual name that Batsim JSON can express."""
    profiles: list[Profile] = []
    for name in draw(st.lists(names, min_size=1, max_size=5, unique=True)):
        if profiles and draw(st.booleans()):
            parts = tuple(draw(st.lists(st.sampled_from(profiles), min_size=1, max_size=3)))
            profiles.append(Composed(name=name, parts=parts, repeat=draw(st.integers(1, 9))))
        else:
            profiles.append(msgspec.structs.replace(draw(simple_profiles), name=name))
    jobs = [
        Job(
            workload="w0",
            name=name,
            submit=Instant(draw(times)),
            size=draw(st.integers(1, 10**6)),
            profile=draw(st.sampled_from(profiles)),
            walltime=draw(st.none() | lengths.map(Duration)),
            requests=draw(requests),
            user=draw(st.sampled_from(["", "ann", "7"])),
            priority=draw(st.integers(-5, 5)),
            scheduler=draw(st.sampled_from(["", "default"])),
            queue=draw(st.sampled_from(["", "long", "2"])),
            gang=draw(st.builds(GangTerms, st.integers(0, 1), requests)),
        )
        for name in draw(st.lists(names, min_size=1, max_size=8, unique=True))
    ]
    jobs.sort(key=lambda job: (job.submit, job.name))
    return Workload(name="w0", source="test", jobs=jobs, size_machines=draw(st.none() | st.integers(1, 10**6)))


@st.composite
def delay_workload(draw: st.DrawFn) -> Workload:
    """Workloads that SWF can express: numbers as names and users, delays, sizes, walltimes."""
    delays = DelayProfiles()
    jobs = [
        Job(
            workload="w0",
            name=str(name),
            submit=Instant(draw(times)),
            size=draw(st.integers(1, 10**6)),
            profile=delays.profile_for(Duration(draw(times))),
            walltime=draw(st.none() | lengths.map(Duration)),
            user=draw(st.sampled_from(["", "1", "22"])),
            queue=draw(st.sampled_from(["", "1", "2"])),
            partition=draw(st.sampled_from(["", "0", "3"])),
        )
        for name in draw(st.lists(st.integers(0, 10**9), min_size=1, max_size=10, unique=True))
    ]
    jobs.sort(key=lambda job: job.submit)
    return Workload(name="w0", source="test", jobs=jobs, size_machines=draw(st.integers(1, 10**6)))


def write_and_read(workload: Workload, name: str) -> Workload:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write_workload(workload, path)
        return read_workload(path)


@settings(max_examples=80, deadline=None)
@given(any_workload())
def test_batsim_json_reads_back_as_the_same_workload(workload: Workload) -> None:
    again = write_and_read(workload, "w.json")

    assert again.jobs == workload.jobs
    assert again.size_machines == workload.size_machines


def test_an_assumed_machine_size_is_unknown_after_reading_it_back(delays_at: MakeWorkload) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "w.json"
        write_workload(delays_at((0, 10, 3), (5, 10, 7)), path)

        assert json.loads(path.read_text())["nb_res"] == 7
        assert read_workload(path).size_machines is None


@settings(max_examples=50, deadline=None)
@given(delay_workload())
def test_swf_reads_back_as_the_same_workload(workload: Workload) -> None:
    again = write_and_read(workload, "w.swf")

    assert again.jobs == workload.jobs
    assert again.size_machines == workload.size_machines


@settings(max_examples=30, deadline=None)
@given(delay_workload(), requests, st.integers(-5, 5), st.sampled_from(["", "volcano"]))
def test_manifests_read_back_as_the_same_jobs(
    workload: Workload, pod_requests: tuple[tuple[str, int], ...], priority: int, scheduler: str
) -> None:
    jobs = [
        msgspec.structs.replace(
            job,
            requests=pod_requests,
            priority=priority,
            scheduler=scheduler,
            image="example/work:1",
            queue="",
            partition="",
        )
        for job in workload.jobs
    ]

    assert write_and_read(Workload(name="w0", source="test", jobs=jobs), "w.yaml").jobs == jobs


@given(times)
def test_seconds_are_written_exactly_without_trailing_zeros(ns: int) -> None:
    text = exact_seconds(ns)

    assert seconds(text) == ns
    assert not ("." in text and text.endswith("0"))


def test_requests_are_written_on_the_profile_if_its_jobs_agree(delays_at: MakeWorkload, tmp_path: Path) -> None:
    workload = delays_at((0, 10, 1), (1, 10, 1), (2, 20, 1), requests=(("cpu", 1500),), scheduler="default")
    jobs = [*workload.jobs[:2], workload.jobs[2], msgspec.structs.replace(workload.jobs[2], name="x", requests=())]

    write_workload(Workload(name="w0", source="test", jobs=jobs), tmp_path / "w.json")

    document = json.loads((tmp_path / "w.json").read_text())
    assert document["profiles"] == {
        "delay10": {"type": "delay", "delay": 10, "cpu": 1.5, "scheduler": "default"},
        "delay20": {"type": "delay", "delay": 20},
    }
    assert [job.get("cpu") for job in document["jobs"]] == [None, None, 1.5, None]


def test_different_profiles_of_one_name_get_unique_names(delays_at: MakeWorkload, tmp_path: Path) -> None:
    first, second = delays_at((0, 10, 1), (1, 20, 1)).jobs
    same_name = msgspec.structs.replace(second, profile=Delay(name="delay10", duration=seconds(20)))

    write_workload(Workload(name="w0", source="test", jobs=[first, same_name]), tmp_path / "w.json")

    assert [job.profile.name for job in read_workload(tmp_path / "w.json").jobs] == ["delay10", "delay10_2"]


def test_nb_res_is_written_because_batsim_requires_it(delays_at: MakeWorkload, tmp_path: Path) -> None:
    write_workload(delays_at((0, 10, 3), (0, 10, 8)), tmp_path / "w.json")

    assert json.loads((tmp_path / "w.json").read_text())["nb_res"] == 8


def test_swf_output_numbers_names_and_notes_its_losses(delays_at: MakeWorkload, tmp_path: Path) -> None:
    workload = delays_at((0, 10, 1), (5, 10, 1), user="ann", requests=(("cpu", 1),), priority=2, scheduler="s")
    jobs = [
        msgspec.structs.replace(job, name=f"pod-{job.name}", queue=queue, partition="gpu nodes")
        for job, queue in zip(workload.jobs, ("batch", "debug"), strict=True)
    ]

    losses = write_workload(Workload(name="w0", source="test", jobs=jobs), tmp_path / "w.swf")

    again = read_workload(tmp_path / "w.swf").jobs
    assert [(job.name, job.queue, job.partition) for job in again] == [("1", "1", "1"), ("2", "2", "1")]
    text = (tmp_path / "w.swf").read_text()
    for remark in ("Note: user 1 is ann", "Queue: 1 batch", "Queue: 2 debug", "Partition: 1 gpu nodes"):
        assert f"; {remark}\n" in text
    assert [(note.message.split(":")[0], count) for note, count in losses] == [
        ("SWF cannot express requests per pod", 2),
        ("SWF cannot express priorities", 2),
        ("SWF cannot express schedulers", 2),
    ]


def test_a_written_manifest_is_valid_for_a_cluster(delays_at: MakeWorkload, tmp_path: Path) -> None:
    workload = delays_at(
        (0, 90, 2), walltime=seconds("100.5"), requests=(("cpu", 1500), ("nvidia.com/gpu", 2)), priority=-3
    )

    write_workload(workload, tmp_path / "w.yaml")

    priority_class, job = yaml.safe_load_all((tmp_path / "w.yaml").read_text())
    assert (priority_class["kind"], priority_class["value"]) == ("PriorityClass", -3)
    pod = job["spec"]["template"]["spec"]
    assert (job["apiVersion"], job["spec"]["completions"], job["spec"]["parallelism"]) == ("batch/v1", 2, 2)
    assert pod["priorityClassName"] == priority_class["metadata"]["name"]
    assert (pod["restartPolicy"], pod["activeDeadlineSeconds"]) == ("Never", 101)
    assert pod["containers"][0]["resources"] == {
        "requests": {"cpu": "1500m", "nvidia.com/gpu": "2"},
        "limits": {"nvidia.com/gpu": "2"},
    }
    assert pod["containers"][0]["command"] == ["sh", "-c", "sleep 90"]


def test_names_that_kubernetes_forbids_are_changed_and_counted(delays_at: MakeWorkload, tmp_path: Path) -> None:
    workload = delays_at(*[(0, 1, 1)] * 5)
    awkward = ["Big_Job", "big-job", "é", "x" * 70, "x" * 71]
    jobs = [msgspec.structs.replace(job, name=name) for job, name in zip(workload.jobs, awkward, strict=True)]

    losses = write_workload(Workload(name="w0", source="test", jobs=jobs), tmp_path / "w.yaml")

    assert [job.name for job in read_workload(tmp_path / "w.yaml").jobs] == [
        "big-job",
        "big-job-2",
        "job",
        "x" * 55,
        "x" * 55 + "-2",
    ]
    assert [count for _, count in losses] == [4]


@pytest.mark.parametrize("name", ["w.swf", "w.yaml"])
def test_a_profile_without_fixed_run_time_can_only_be_written_as_batsim_json(tmp_path: Path, name: str) -> None:
    profile = ParallelHomogeneous(name="flops", cpu_flops=1e9, com_bytes=0)
    job = Job(workload="w0", name="1", submit=Instant(0), size=1, profile=profile)

    with pytest.raises(InputError, match="has no fixed run time") as error:
        write_workload(Workload(name="w0", source="test", jobs=[job]), tmp_path / name)

    assert error.value.at == "job 1"
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_only_replaced_with_force(delays_at: MakeWorkload, tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text("precious")

    with pytest.raises(InputError, match="already exists"):
        write_workload(delays_at((0, 1, 1)), path)
    assert path.read_text() == "precious"

    write_workload(delays_at((0, 1, 1)), path, force=True)
    assert len(read_workload(path).jobs) == 1


def test_a_failed_write_keeps_the_old_file_and_leaves_no_other(tmp_path: Path) -> None:
    path = tmp_path / "w.swf"
    path.write_text("precious")
    profile = ParallelHomogeneous(name="flops", cpu_flops=1e9, com_bytes=0)
    job = Job(workload="w0", name="1", submit=Instant(0), size=1, profile=profile)

    with pytest.raises(InputError):
        write_workload(Workload(name="w0", source="test", jobs=[job]), path, force=True)

    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("w.swf", "precious")]


@pytest.mark.parametrize(
    ("name", "part"),
    [("w.csv", "no extension of a writable format"), ("w", "no extension"), ("no/such/w.json", "such does not exist")],
)
def test_an_unwritable_output_is_rejected(delays_at: MakeWorkload, tmp_path: Path, name: str, part: str) -> None:
    with pytest.raises(InputError, match=part):
        write_workload(delays_at((0, 1, 1)), tmp_path / name)


def test_a_directory_is_rejected_as_output(delays_at: MakeWorkload, tmp_path: Path) -> None:
    (tmp_path / "w.json").mkdir()

    with pytest.raises(InputError, match="is a directory"):
        write_workload(delays_at((0, 1, 1)), tmp_path / "w.json", force=True)


def test_gzipped_output_is_the_same_bytes_each_time(delays_at: MakeWorkload, tmp_path: Path) -> None:
    workload = delays_at((0, 1, 1))
    for name in ("a.swf.gz", "b.swf.gz"):
        write_workload(workload, tmp_path / name)

    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.swf.gz").read_bytes()).startswith(b"; Version: 2.2\n")
    assert read_workload(tmp_path / "a.swf.gz").jobs == workload.jobs
