"""The details of items, and the flows of pods."""

from __future__ import annotations

from batkube.kernel.instants import Duration, Instant
from batkube.kernel.quantities import CPU, MACHINE, MEMORY
from batkube.outputs.exports.timeline.details import flow_of, flows_of_execution, job_details, node_details, pod_details
from batkube.outputs.playback.model import Execution, NodePeriod, RecordedJob, RecordedNode, RecordedPod

EXECUTIONS = (Execution(Instant(0), None, Instant(5)), Execution(Instant(5)))


def a_pod(number: int, created: int) -> RecordedPod:
    requests = {CPU: 1500, MEMORY: 2**30}
    return RecordedPod(number, f"p{number}", 0, "", Instant(created), None, None, None, "Pending", 2, "", "", requests)


def a_job(**more: object) -> RecordedJob:
    return RecordedJob(0, "w!1", "1", "w", EXECUTIONS, **more)  # type: ignore[arg-type]


def test_the_flow_of_the_first_pod_is_not_zero() -> None:
    assert [flow_of(0), flow_of(1)] == [1, 2]


def test_a_pod_belongs_to_the_execution_in_which_it_was_created() -> None:
    pods = [a_pod(0, 0), a_pod(1, 4), a_pod(2, 5)]
    job = a_job(pods=(0, 1, 2))

    assert flows_of_execution(job, 0, pods) == [1, 2]
    assert flows_of_execution(job, 1, pods) == [3]


def test_amounts_have_their_usual_units_and_whole_machines_are_left_out() -> None:
    node = RecordedNode(0, "n", 0, {CPU: 4000, MEMORY: 2**31, MACHINE: 1}, "z1", "", "", (NodePeriod(Instant(0)),))

    assert node_details(node) == {CPU: "4", MEMORY: "2Gi", "zone": "z1"}


def test_fields_that_are_unset_are_left_out() -> None:
    assert job_details(a_job()) == {"job": "w!1", "priority": 0}
    assert job_details(a_job(size=2, user="ann", walltime=Duration(9))) == {
        "job": "w!1",
        "size": 2,
        "user": "ann",
        "priority": 0,
        "walltime_ns": 9,
    }


def test_a_pod_names_its_job() -> None:
    details = pod_details(a_pod(0, 0), [a_job()])

    assert details == {"job": "w!1", "phase": "Pending", "attempts": 2, CPU: "1500m", MEMORY: "1Gi"}
