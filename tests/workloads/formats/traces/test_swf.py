"""Reading SWF traces."""

from __future__ import annotations

import gzip
import random
from fractions import Fraction
from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Duration, seconds
from batkube.workloads.formats.traces import swf
from batkube.workloads.model import Delay, Workload
from batkube.workloads.reader import read_workload
from batkube.workloads.transformations import conversions, selection
from batkube.workloads.transformations.resampling import block_bootstrap, disjoint_job_window
from batkube.workloads.walltime_notes import WALLTIME_OVERRUN
from batkube.workloads.writer import write_workload

FIELDS = ("number", "submit", "wait", "run", "allocated", "cpu", "memory", "requested", "time", "mem", "status", "user")


def line(number: int | str = 1, **fields: object) -> str:
    """Return a job line; by default, it runs for 10 s on 1 processor from 0, and its other fields are unknown."""
    values = {"number": number, "submit": 0, "run": 10, "allocated": 1, **fields}
    queue, partition, preceding = (fields.get(name, -1) for name in ("queue", "partition", "preceding"))
    return " ".join(str(values.get(name, -1)) for name in FIELDS) + f" -1 -1 {queue} {partition} {preceding} -1\n"


def read(tmp_path: Path, *lines: str) -> Workload:
    path = tmp_path / "trace.swf"
    path.write_text("".join(lines))
    return read_workload(path)


def counts_by_message(workload: Workload) -> dict[str, int]:
    return {note.message: count for note, count in workload.notes}


def test_a_job_has_the_values_of_its_line(tmp_path: Path) -> None:
    trace = read(
        tmp_path, line(5, submit=3, wait=7, run=61, allocated=16, requested=20, time=3600, user=4, queue=2, partition=3)
    )

    (job,) = trace.jobs
    assert (job.key, job.submit, job.size, job.walltime) == ("w0!5", seconds(3), 16, seconds(3600))
    assert job.profile == Delay(name="delay61", duration=seconds(61))
    assert (job.user, job.queue, job.partition, job.requests) == ("4", "2", "3", ())
    assert trace.notes == ()


def test_unknown_fields_stay_unknown(tmp_path: Path) -> None:
    (job,) = read(tmp_path, line()).jobs

    assert (job.walltime, job.user, job.queue, job.partition) == (None, "", "", "")


def test_requested_processors_replace_missing_allocated_ones(tmp_path: Path) -> None:
    trace = read(tmp_path, line(1, allocated=-1, requested=8), line(2, allocated=0, requested=4))

    assert [job.size for job in trace.jobs] == [8, 4]


@pytest.mark.parametrize("time", [0, -1])
def test_a_job_without_requested_time_has_no_walltime(tmp_path: Path, time: int) -> None:
    assert read(tmp_path, line(time=time)).jobs[0].walltime is None


def test_a_job_without_run_time_is_left_out_and_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, line(1), line(2, run=-1), line(3, run=-1))

    assert [job.name for job in trace.jobs] == ["1"]
    assert trace.notes == ((swf.NO_RUN_TIME, 2),)


def test_a_job_without_processors_is_left_out_and_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, line(1), line(2, allocated=-1), line(3, allocated=0, requested=0))

    assert [job.name for job in trace.jobs] == ["1"]
    assert trace.notes == ((swf.NO_PROCESSORS, 2),)


def test_a_job_with_run_time_zero_is_included(tmp_path: Path) -> None:
    assert read(tmp_path, line(run=0)).jobs[0].profile == Delay(name="delay0", duration=seconds(0))


@pytest.mark.parametrize(
    ("run", "noted"), [(59, {}), (60, {WALLTIME_OVERRUN.message: 1}), (61, {WALLTIME_OVERRUN.message: 1})]
)
def test_a_job_that_ran_as_long_as_it_requested_is_noted(tmp_path: Path, run: int, noted: dict[str, int]) -> None:
    assert counts_by_message(read(tmp_path, line(run=run, time=60))) == noted


def test_parts_of_preempted_jobs_are_left_out_and_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, line(1, status=1), line(1, status=2), line(1, status=3), line(1, status=4))

    assert len(trace.jobs) == 1
    assert trace.notes == ((swf.PARTIAL_EXECUTION, 3),)


def test_properties_that_a_run_ignores_are_noted(tmp_path: Path) -> None:
    trace = read(tmp_path, line(1, status=5), line(2, run=20, time=10), line(3, preceding=1))

    assert trace.notes == ((swf.CANCELLED, 1), (WALLTIME_OVERRUN, 1), (swf.DEPENDENCY_IGNORED, 1))


def test_a_written_trace_names_its_source_and_the_notes_of_its_conversion(tmp_path: Path) -> None:
    trace = read(tmp_path, line(1), line(2, run=-1), line(3, run=-1))
    write_workload(trace, tmp_path / "clean.swf")
    header = [row for row in (tmp_path / "clean.swf").read_text().splitlines() if row.startswith(";")]

    assert "; Note: from trace.swf" in header
    assert "; Note: a job of the trace has no run time and is left out (2 times)" in header
    assert str(tmp_path) not in "".join(header)
    assert [job.name for job in read_workload(tmp_path / "clean.swf").jobs] == ["1"]


HEADER = """\
; Computer: IBM SP2
; Installation: SDSC
; UnixStartTime: 893466664
; TimeZoneString: US/Pacific
; MaxProcs: 128
; Queue: 1 express
; Queue:  2   high   priority
; Partition: 7 batch
"""


def headers(workload: Workload, folder: Path) -> list[str]:
    """Return the comments of a workload that is written as SWF, without notes and counts."""
    write_workload(workload, folder / "written.swf", force=True)
    rows = (folder / "written.swf").read_text().splitlines()
    ignored = ("; Version", "; Conversion", "; Max", "; Note")
    return [row for row in rows if row.startswith(";") and not row.startswith(ignored)]


def test_a_trace_written_again_keeps_its_dates_origin_and_names_of_numbers(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER, line(1, queue=2, partition=7), line(2, queue=1, partition=7), line(3, queue=9))

    expected = [
        "; Computer: IBM SP2",
        "; Installation: SDSC",
        "; TimeZoneString: US/Pacific",
        "; UnixStartTime: 893466664",
        "; Queue: 2 high priority",
        "; Queue: 1 express",
        "; Partition: 7 batch",
    ]
    assert headers(trace, tmp_path) == expected
    assert headers(read_workload(tmp_path / "written.swf"), tmp_path) == expected


def test_the_date_of_a_trace_is_that_of_its_instant_0(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER, line(1, submit=100), line(2, submit=86_500))
    rng = random.Random(1)

    def dates(workload: Workload) -> list[str]:
        return [row for row in headers(workload, tmp_path) if "UnixStartTime" in row]

    assert dates(conversions.shift_to_zero(trace)) == ["; UnixStartTime: 893466764"]
    assert dates(selection.first_jobs(trace, 1)) == ["; UnixStartTime: 893466664"]
    assert dates(disjoint_job_window(trace, 1, 1))[0] in (
        "; UnixStartTime: 893466764",
        "; UnixStartTime: 893553164",
    )
    assert dates(conversions.scale_arrival_rate(trace, Fraction(2))) == []
    assert dates(block_bootstrap(trace, Duration(seconds(3600)), Duration(seconds(86_400)), rng)) == []


@pytest.mark.parametrize("header", ["; UnixStartTime: 0\n", "; UnixStartTime: -1\n", "; UnixStartTime: unknown\n", ""])
def test_a_trace_without_a_date_is_written_without_one(tmp_path: Path, header: str) -> None:
    assert headers(conversions.shift_to_zero(read(tmp_path, header, line(1, submit=5))), tmp_path) == []


def test_queues_and_partitions_are_selected_by_number_or_name(tmp_path: Path) -> None:
    trace = read(tmp_path, HEADER, line(1, queue=1), line(2, queue=2), line(3, partition=7), line(4, queue=3))

    def names(**filters: list[str]) -> list[str]:
        return [job.name for job in selection.filter_jobs(trace, **filters).jobs]  # type: ignore[arg-type]

    assert names(queues=["express"]) == names(queues=["1"]) == ["1"]
    assert names(queues=["3", "high priority"]) == ["2", "4"]
    assert names(partitions=["batch"]) == ["3"]
    noted = selection.filter_jobs(trace, queues=["1", "expres"]).notes
    assert [(note.message, count) for note, count in noted] == [("no job has the queue 'expres'", 1)]
    with pytest.raises(InputError, match=r"queues are 1 \(express\), 2 \(high priority\), 3; sizes are 1 to 1"):
        selection.filter_jobs(trace, queues=["expres"], sizes=(1, 4))
    with pytest.raises(InputError, match="no job has a user"):
        selection.filter_jobs(trace, users=["ann"])


def test_walltime_overruns_are_counted_among_the_selected_jobs(tmp_path: Path) -> None:
    trace = read(tmp_path, *(line(number, run=60, time=60, queue=number % 3) for number in range(9)))

    def killed(workload: Workload) -> dict[FidelityNote, int]:
        return dict(selection.recount_overruns(workload).notes)

    assert killed(trace) == {WALLTIME_OVERRUN: 9}
    assert killed(selection.filter_jobs(trace, queues=["1"])) == {WALLTIME_OVERRUN: 3}
    assert killed(conversions.scale_walltimes(trace, Fraction(2))) == {}


def test_notes_of_a_trace_are_marked_after_a_selection(tmp_path: Path) -> None:
    trace = read(tmp_path, *(line(number, status=5, user=number % 2) for number in range(6)), line(7, run=-1))
    part = selection.first_jobs(selection.filter_jobs(trace, users=["1"]), 2)

    assert selection.first_jobs(trace, 6).notes == trace.notes == ((swf.CANCELLED, 6), (swf.NO_RUN_TIME, 1))
    whole = "in the whole trace, of which a part was selected:"
    assert [(note.message, count) for note, count in part.notes] == [
        (f"6 times {whole} {swf.CANCELLED.message}", 1),
        (f"once {whole} {swf.NO_RUN_TIME.message}", 1),
    ]


def test_unsorted_lines_are_sorted_and_ties_keep_their_order(tmp_path: Path) -> None:
    trace = read(tmp_path, line(1, submit=9), line(10, submit=5), line(9, submit=5), line(2, submit=0))

    assert [job.name for job in trace.jobs] == ["2", "10", "9", "1"]


def test_decimals_are_read_exactly(tmp_path: Path) -> None:
    trace = read(tmp_path, line(1, submit="1.5", run="0.1", allocated="4.0"), line(2, submit=2, run="0.10"))

    first, second = trace.jobs
    assert (first.submit, first.profile.name, first.size) == (1_500_000_000, "delay0.1", 4)
    assert first.profile is second.profile


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ("; MaxNodes: 16\n; MaxProcs: 64\n", 64),
        ("; MaxNodes: 256 (two partitions)\n", 256),
        (";MaxProcs:8\n", 8),
        ("; MaxProcs: -1\n; Computer: a\n", None),
        ("", None),
    ],
)
def test_the_header_contains_the_machine_size(tmp_path: Path, header: str, size: int | None) -> None:
    assert read(tmp_path, header, line()).size_machines == size


def test_comments_blank_lines_tabs_and_windows_line_ends_are_accepted(tmp_path: Path) -> None:
    trace = read(
        tmp_path, "; comment é\n", "\n", line(1).replace(" ", "\t").replace("\n", "\r\n"), "  ; late\n", line(2)
    )

    assert [job.name for job in trace.jobs] == ["1", "2"]


def test_a_header_in_latin_1_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "old.swf"
    path.write_bytes("; Acknowledge: Åke\n".encode("latin-1") + line().encode())

    assert len(read_workload(path).jobs) == 1


def test_a_gzipped_trace_is_recognised_by_its_content(tmp_path: Path) -> None:
    plain = read(tmp_path, line(1), line(2, submit=4))
    for name in ("t.swf.gz", "t.gz", "t.txt", "zipped.swf"):
        path = tmp_path / name
        path.write_bytes(gzip.compress((tmp_path / "trace.swf").read_bytes()))

        assert read_workload(path).jobs == plain.jobs


@pytest.mark.parametrize(
    ("lines", "at", "part"),
    [
        ([line(1), "2 0 -1 10\n"], "line 2", "has 4 fields"),
        (["; c\n", line(1), "\n", line(1, submit=3)], "line 4", "job number 1 is already used in line 2"),
        ([line(1, submit=-1)], "line 1", "submit time.*negative"),
        ([line(1, submit="x")], "line 1", r"field 2 \(submit time\) is 'x'"),
        ([line(1, run="nan")], "line 1", r"field 4 \(run time\) is 'nan'"),
        ([line(1, run="1e40")], "line 1", "field 4"),
        ([line(1, submit="99999999999")], "line 1", "field 2"),
        ([line(1, allocated="1.5")], "line 1", r"field 5 \(allocated processors\) is '1.5', which is not a whole"),
        ([line(1, allocated=-1, requested="inf")], "line 1", "field 8"),
        ([line(1, time="soon")], "line 1", "field 9"),
        (["; only a header\n"], None, "contains no job: every line is blank or a comment"),
        ([line(1, run=-1)], None, "1 lines were left out"),
        ([""], None, "is empty"),
    ],
)
def test_an_invalid_trace_is_rejected_with_its_line(
    tmp_path: Path, lines: list[str], at: str | None, part: str
) -> None:
    with pytest.raises(InputError, match=part) as error:
        read(tmp_path, *lines)

    assert error.value.at == at


@pytest.mark.parametrize("damage", [slice(0, -9), slice(0, 30)])
def test_a_damaged_gzip_file_is_rejected(tmp_path: Path, damage: slice) -> None:
    path = tmp_path / "cut.swf.gz"
    path.write_bytes(gzip.compress("".join(map(line, range(50))).encode())[damage])

    with pytest.raises(InputError, match="damaged gzip"):
        read_workload(path)


#: Jobs that can run, machine size and skipped jobs, counted with awk in the files. HPC2N is in test_large_traces.
ARCHIVE = {
    "CEA-Curie-2011-2.1-cln-b1.swf.gz": (36464, None, 1),
    "KTH-SP2-1996-2.swf": (28489, 100, 0),
    "SDSC-SP2-1998-first5000lines.swf": (4606, 128, 355),
    "accasim-test-workload.swf": (25, None, 0),
    "alea-hpc2n-excerpt.swf": (3145, 240, 25),
    "cqsim-test.swf": (9, 100, 0),
    "lublin_256.swf": (10000, 256, 0),
    "pyss-estimation_starvation.swf": (8, 2, 0),
    "pyss-estimation_tsafrir_exemple.swf": (4, 2, 0),
    "pyss-overestimation_exemple.swf": (4, 2, 0),
    "theta_1000.swf": (1000, 4360, 0),
}


@pytest.mark.parametrize("name", ARCHIVE)
def test_every_available_trace_is_read(shared_data: Path, name: str) -> None:
    trace = read_workload(shared_data / "swf" / name)

    skipped = sum(count for note, count in trace.notes if note in (swf.NO_RUN_TIME, swf.NO_PROCESSORS))
    assert (len(trace.jobs), trace.size_machines, skipped) == ARCHIVE[name]
    assert all(job.submit <= later.submit for job, later in zip(trace.jobs, trace.jobs[1:], strict=False))
