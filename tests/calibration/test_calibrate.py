"""Calibration recovers the steps of a synthetic cluster from its recordings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.calibration.calibrate import calibrate
from batkube.calibration.cluster_traits import client_limit, request_limit_in
from batkube.calibration.fitting import Fit
from batkube.calibration.latencies_file import latencies_text
from batkube.calibration.recorded_runs import read_recorded_runs
from batkube.calibration.steps import peak_concurrency, steps_of
from batkube.execution.latencies.delays import FirstPodStep, read_latencies
from batkube.execution.latencies.request_limit import RequestLimit
from batkube.kernel.distributions import Distribution
from batkube.kernel.errors import InputError
from calibration.conftest import TRUTH, Row, Write, recorded_rows


def by_step(fits: list[Fit]) -> dict[str, Fit]:
    return {fit.sample.step: fit for fit in fits}


# Steps


def test_the_steps_of_a_recording_are_recovered(write: Write) -> None:
    paths = [write(f"{seed}_jobs.csv", recorded_rows(nodes=10, seed=seed)) for seed in range(4)]

    calibration = calibrate(paths)

    fits = by_step(calibration.fits)
    assert list(fits) == ["notice.first", "notice.later", "pull", "check", "create", "start", "report"]
    assert calibration.cached_share == 0
    means = {"notice.first": 3, "notice.later": 0.506, "pull": 20, "check": 0.9, "create": 0.0567, "report": 0.5}
    for step, mean in means.items():
        assert fits[step].mean == pytest.approx(mean, rel=0.06), step
    assert fits["start"].distribution == Distribution("constant", (0.1,))
    assert len(fits["notice.later"].sample) == 4 * 10 * 49


def test_a_row_with_a_missing_event_is_used_for_its_other_steps(write: Write) -> None:
    rows = recorded_rows(nodes=10, waves=20)
    for number, row in enumerate(rows):
        if number % 3 == 0:
            row |= {"scheduled": "", "allocated_resources": ""}
        if number % 7 == 0:
            row["created"] = ""

    fits = by_step(calibrate([write("jobs.csv", rows)]).fits)

    notice = [sample for step, fit in fits.items() for sample in [fit.sample] if step.startswith("notice")]
    assert sum(len(sample) for sample in notice) == 200 - 67
    assert sum(sample.missing for sample in notice) == 67
    assert len(fits["create"].sample) == len(fits["start"].sample) == 200 - 29
    assert len(fits["report"].sample) == 200


def test_a_check_of_a_present_image_is_not_counted_as_a_pull(write: Write) -> None:
    rows = recorded_rows(nodes=10, waves=20)
    with_image = recorded_rows(nodes=10, waves=20, seed=1, truth={**TRUTH, "pull": TRUTH["check"]})

    calibration = calibrate([write("cold_jobs.csv", rows), write("warm_jobs.csv", with_image)])

    assert calibration.cached_share == 0.5
    assert len(by_step(calibration.fits)["pull"].sample) == 10
    assert len(by_step(calibration.fits)["check"].sample) == 390


def test_there_are_no_checks_if_later_pods_have_no_pulling_event(write: Write) -> None:
    """With imagePullPolicy IfNotPresent later pods have Pulled without Pulling."""
    rows = recorded_rows(nodes=5, waves=10, truth={**TRUTH, "check": "constant:0"})
    for row in rows:
        if float(str(row["pulled"])) - float(str(row["pulling"])) < 1:
            row["pulling"] = ""

    fits = by_step(calibrate([write("jobs.csv", rows)]).fits)

    assert "check" not in fits
    assert len(fits["notice.later"].sample) == 45
    assert len(fits["pull"].sample) == 5


def test_events_in_the_wrong_order_have_a_time_of_zero(write: Write) -> None:
    rows = recorded_rows(nodes=5, waves=10)
    rows[7]["created"] = str(float(str(rows[7]["pulled"])) - 0.003)

    create = by_step(calibrate([write("jobs.csv", rows)]).fits)["create"]

    assert create.sample.values[0] == 0


def test_run_times_are_those_of_the_workload_or_the_shortest_whole_second(write: Write, tmp_path: Path) -> None:
    rows = recorded_rows(nodes=5, waves=10, length=10.5)
    workload = tmp_path / "workload.json"
    jobs = ", ".join(f'{{"id": "{n}", "subtime": 0, "res": 1, "profile": "d"}}' for n in range(1, 51))
    workload.write_text(f'{{"nb_res": 5, "jobs": [{jobs}], "profiles": {{"d": {{"type": "delay", "delay": 10.5}}}}}}')
    path = write("jobs.csv", rows)

    estimated = by_step(calibrate([path]).fits)["report"].sample.values
    from_workload = by_step(calibrate([path], workload=workload).fits)["report"].sample.values

    assert np.allclose(estimated, from_workload + 0.5)
    assert 0 <= from_workload[0] < from_workload[-1] <= 1


def test_jobs_that_failed_or_have_several_pods_are_ignored(write: Write) -> None:
    rows = recorded_rows(nodes=5, waves=4)
    rows[0]["success"] = 0
    rows[1]["requested_number_of_resources"] = 3
    rows[2]["starting_time"] = ""

    assert calibrate([write("jobs.csv", rows)]).jobs == 17


def test_a_family_can_be_forced_for_one_step_or_for_all(write: Write) -> None:
    path = write("jobs.csv", recorded_rows())

    fits = by_step(calibrate([path], families={"": "gamma", "notice": "empirical"}).fits)

    assert {step: fit.distribution.name for step, fit in fits.items()} == {
        "notice.first": "empirical",
        "notice.later": "empirical",
        **dict.fromkeys(("pull", "check", "create", "start", "report"), "gamma"),
    }


# Traits of the cluster


def submissions(times: list[float]) -> list[Row]:
    """Return jobs that were submitted at these times, each on its own node."""
    rows = recorded_rows(nodes=len(times), waves=1)
    return [row | {"submission_time": f"{time:.3f}"} for row, time in zip(rows, times, strict=True)]


@given(st.integers(2, 30), st.sampled_from([1.0, 2.0, 5.0, 20.0, 50.0]))
def test_the_rate_limit_of_a_client_is_estimated_from_its_submissions(burst: int, qps: float) -> None:
    times = np.concatenate([np.linspace(0, 0.1, burst), np.arange(1, 101)]) / qps

    assert request_limit_in(times) == RequestLimit(qps, burst)


def test_evenly_spaced_jobs_do_not_show_a_rate_limit(write: Write) -> None:
    spaced = read_recorded_runs([write("spaced_jobs.csv", submissions([10.0 * n for n in range(60)]))])
    at_once = read_recorded_runs([write("burst_jobs.csv", submissions([0.0] * 60))])

    assert client_limit(spaced) is None
    assert client_limit(at_once) is None


def test_fewer_nodes_than_jobs_used_are_rejected(write: Write) -> None:
    with pytest.raises(InputError, match="--nodes 3: jobs ran on 5 nodes"):
        calibrate([write("jobs.csv", recorded_rows(nodes=5))], nodes=3)


def test_each_unused_node_has_a_system_pod(write: Write) -> None:
    path = write("jobs.csv", recorded_rows(nodes=5))

    counts = {nodes: len(calibrate([path], nodes=nodes).nodes.system_pods) for nodes in (None, 5, 6, 8)}

    assert counts == {None: 1, 5: 0, 6: 1, 8: 3}


def test_the_peak_concurrency_is_the_number_of_jobs_that_run_together(write: Write) -> None:
    (recording,) = read_recorded_runs([write("jobs.csv", recorded_rows(nodes=7, waves=3))])

    assert peak_concurrency(recording) == 7


def test_the_spawn_time_is_measured_on_jobs_that_found_a_free_node(write: Write) -> None:
    """The second and third wave of jobs waited for a node."""
    rows = recorded_rows(nodes=4, waves=3)
    for row in rows:
        if row["scheduled"] == "0.000":
            row["scheduled"] = "0.030"
    (recording,) = read_recorded_runs([write("jobs.csv", rows)])

    spawn = steps_of([recording]).samples[0]

    assert spawn.step == "spawn"
    assert set(spawn.values) == {0.03}


# The file


def test_the_written_file_is_read_back_unchanged(write: Write, tmp_path: Path) -> None:
    calibration = calibrate([write("jobs.csv", recorded_rows(nodes=10))], nodes=11)
    file = tmp_path / "latencies.yaml"
    file.write_text(latencies_text(calibration))

    latencies = read_latencies(file)

    fits = {step: fit.distribution for step, fit in by_step(calibration.fits).items()}
    assert latencies.notice == FirstPodStep(fits["notice.first"], fits["notice.later"])
    assert (latencies.pull, latencies.check, latencies.create, latencies.report) == tuple(
        fits[step] for step in ("pull", "check", "create", "report")
    )
    assert [pod.describe() for pod in latencies.system_pods] == ["coredns, cpu 100m, memory 70Mi"]
    assert all(len(line) <= 120 for line in file.read_text().splitlines())


def test_the_same_recording_gives_the_same_file(write: Write) -> None:
    path = write("jobs.csv", recorded_rows())

    assert latencies_text(calibrate([path])) == latencies_text(calibrate([path]))


# Wrong input


def test_a_simulated_run_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job_id,submission_time,starting_time,execution_time,finish_time,allocated_resources\n1,0,0,10,10,0\n"
    )

    with pytest.raises(InputError, match="has none of the columns scheduled, pulling, pulled, created") as raised:
        calibrate([path])
    assert "batkube emulate" in str(raised.value)


def test_a_recording_without_two_consecutive_events_is_rejected(write: Write) -> None:
    rows = [row | {"pulling": "", "created": ""} for row in recorded_rows(nodes=2, waves=2)]
    for row in rows:
        row["scheduled"] = ""

    with pytest.raises(InputError, match="no step can be measured"):
        calibrate([write("jobs.csv", rows)])


def test_a_recording_without_a_successful_job_is_rejected(write: Write) -> None:
    rows = [row | {"success": 0} for row in recorded_rows(nodes=2, waves=2)]

    with pytest.raises(InputError, match="no job that succeeded"):
        calibrate([write("jobs.csv", rows)])


def test_a_cell_that_is_not_a_number_is_reported_with_its_line(write: Write) -> None:
    rows = recorded_rows(nodes=2, waves=2)
    rows[1]["pulling"] = "soon"

    with pytest.raises(InputError, match="line 3, column pulling: 'soon' is not a number"):
        calibrate([write("jobs.csv", rows)])


def test_simulated_kubelets_have_one_step_from_scheduled_to_started(write: Write) -> None:
    rows = [row | {"pulling": "", "pulled": "", "created": ""} for row in recorded_rows(nodes=3, waves=20)]

    fits = by_step(calibrate([write("jobs.csv", rows)]).fits)

    assert [step.partition(".")[0] for step in fits] == ["start", "start", "report"]
    assert fits["start.later"].sample.values.min() > 1


def test_the_times_of_an_accelerated_emulation_are_converted_to_real_time(write: Write, tmp_path: Path) -> None:
    """At speed 10, a real second is ten seconds of the file, and pods sleep for a tenth."""
    plain = write("jobs.csv", recorded_rows(nodes=5, waves=20, length=2))
    accelerated = tmp_path / "hastened"
    accelerated.mkdir()
    rows = [
        {name: f"{10 * float(str(value)):.2f}" if "." in str(value) else value for name, value in row.items()}
        for row in recorded_rows(nodes=5, waves=20, length=2)
    ]
    write("hastened/jobs.csv", rows)
    (accelerated / "manifest.json").write_text('{"emulation": {"speed": 10}}')

    real, converted = (by_step(calibrate([path]).fits) for path in (plain, accelerated))

    for step, fit in real.items():
        assert converted[step].sample.values == pytest.approx(fit.sample.values, abs=0.0011), step
