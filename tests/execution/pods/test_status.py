"""The status that a kubelet writes for a pod: container states and conditions."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.cluster.store import Key
from batkube.execution.pods.container_plan import ContainerPlan
from batkube.execution.pods.state import PodState
from batkube.execution.pods.status import rejected_status, status_of, status_with_identity
from batkube.kernel.instants import START, Instant, rfc3339, seconds


def at(second: float) -> Instant:
    return Instant(START + seconds(second))


def pod(*, status: dict[str, Any] | None = None, **spec: object) -> dict[str, Any]:
    containers = [{"name": "c", "image": "registry/web:1", "resources": {"requests": {"cpu": "1"}}}]
    metadata = {"name": "p", "uid": "u", "generation": 1}
    return {"metadata": metadata, "spec": {"nodeName": "n", "containers": containers, **spec}, "status": status or {}}


def new_state(one: dict[str, Any]) -> PodState:
    return PodState(Key("x/p"), one, (), START)


def running_state(one: dict[str, Any], *, is_ready: bool = True) -> PodState:
    state = new_state(one)
    state.has_sandbox = True
    for container in state.containers():
        container.start(ContainerPlan(None), None, at(1))
        container.mark_up()
        container.is_ready = is_ready
    return state


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    return {each["type"]: (each["status"], each.get("reason")) for each in status["conditions"]}


def test_a_pod_that_is_being_created_waits_with_the_reason_of_kubectl() -> None:
    plain, with_init = pod(), pod(initContainers=[{"name": "i", "image": "i"}])

    (container,) = status_of(plain, new_state(plain), at(0))["containerStatuses"]
    assert container["state"] == {"waiting": {"reason": "ContainerCreating"}}
    status = status_of(with_init, new_state(with_init), at(0))
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}
    assert conditions(status)["Initialized"] == ("False", "ContainersNotInitialized")
    assert conditions(status)["PodReadyToStartContainers"] == ("False", None)
    (message,) = [each["message"] for each in status["conditions"] if each["type"] == "Initialized"]
    assert message == "containers with incomplete status: [i]"


def test_a_running_pod_is_ready_with_the_instants_of_its_start() -> None:
    one = pod()
    status = status_of(one, running_state(one), at(2))

    assert (status["phase"], status["startTime"]) == ("Running", rfc3339(START))
    (container,) = status["containerStatuses"]
    assert container["state"] == {"running": {"startedAt": rfc3339(at(1))}}
    assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)
    assert container["allocatedResources"] == {"cpu": "1"}
    assert {each for each, _ in conditions(status).values()} == {"True"}
    assert all(each["observedGeneration"] == 1 for each in status["conditions"])


def test_an_unready_container_is_named_in_both_conditions_of_readiness() -> None:
    one = pod()
    status = status_of(one, running_state(one, is_ready=False), at(2))

    unready = [each for each in status["conditions"] if each["type"] in ("Ready", "ContainersReady")]
    assert {each["message"] for each in unready} == {"containers with unready status: [c]"}
    assert {each["reason"] for each in unready} == {"ContainersNotReady"}


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (None, 'corresponding condition of pod readiness gate "g" does not exist.'),
        ("False", 'the status of pod readiness gate "g" is not "True", but False'),
        ("True", None),
    ],
)
def test_a_readiness_gate_must_be_true_for_the_pod_to_be_ready(gate: str | None, message: str | None) -> None:
    """GenerateReadyCondition of pkg/kubelet/status/generate.go; the containers are ready all the same."""
    own = [] if gate is None else [{"type": "g", "status": gate}]
    one = pod(readinessGates=[{"conditionType": "g"}], status={"conditions": own})
    status = status_of(one, running_state(one), at(2))

    assert conditions(status)["ContainersReady"] == ("True", None)
    (ready,) = [each for each in status["conditions"] if each["type"] == "Ready"]
    assert (ready["status"], ready.get("message")) == ("True" if message is None else "False", message)
    assert [each for each in status["conditions"] if each["type"] == "g"] == own


@pytest.mark.parametrize(("code", "phase", "reason"), [(0, "Succeeded", "PodCompleted"), (1, "Failed", "PodFailed")])
def test_an_ended_pod_is_not_ready_for_the_reason_of_its_phase(code: int, phase: str, reason: str) -> None:
    one = pod(restartPolicy="Never")
    state = running_state(one)
    state.main[0].end(code, at(5))
    state.has_ended = True
    status = status_of(one, state, at(5))

    assert status["phase"] == phase
    assert conditions(status)["Ready"] == ("False", reason)
    terminated = status["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (code, "Error" if code else "Completed")
    assert (terminated["startedAt"], terminated["finishedAt"]) == (rfc3339(at(1)), rfc3339(at(5)))


def test_the_transition_time_of_a_condition_changes_with_its_status_only() -> None:
    one = pod()
    state = running_state(one)
    first = status_of(one, state, at(2))
    state.main[0].is_ready = False
    second = status_of({**one, "status": first}, state, at(9))

    times = {each["type"]: each["lastTransitionTime"] for each in second["conditions"]}
    assert times["Ready"] == times["ContainersReady"] == rfc3339(at(9))
    assert times["Initialized"] == times["PodScheduled"] == rfc3339(at(2))


def test_a_restarted_container_reports_its_last_run_under_the_id_of_that_run() -> None:
    one = pod()
    state = running_state(one)
    (earlier,) = status_of(one, state, at(2))["containerStatuses"]
    state.main[0].end(3, at(5))
    state.main[0].set_waiting("CrashLoopBackOff", "back-off 10s")
    state.main[0].start(ContainerPlan(None), None, at(15))
    (container,) = status_of(one, state, at(15))["containerStatuses"]

    assert container["restartCount"] == 1
    assert container["lastState"]["terminated"]["exitCode"] == 3
    assert container["lastState"]["terminated"]["containerID"] == earlier["containerID"] != container["containerID"]


def test_conditions_and_fields_of_others_are_kept() -> None:
    target = {"type": "DisruptionTarget", "status": "True"}
    one = pod(status={"conditions": [target], "qosClass": "Burstable", "nominatedNodeName": "n"})
    status = status_of(one, running_state(one), at(2))

    assert target in status["conditions"]
    assert (status["qosClass"], status["nominatedNodeName"]) == ("Burstable", "n")


def test_a_rejected_pod_fails_without_container_statuses() -> None:
    status = rejected_status(
        pod(status={"qosClass": "Guaranteed"}), "OutOfcpu", "Node didn't have enough resource: cpu"
    )

    assert status == {
        "phase": "Failed",
        "message": "Pod was rejected: Node didn't have enough resource: cpu",
        "reason": "OutOfcpu",
        "qosClass": "Guaranteed",
    }


def test_a_status_for_another_pod_equals_the_status_of_that_pod() -> None:
    one, other = pod(), pod()
    other["metadata"] = {**other["metadata"], "name": "q", "uid": "v"}
    states = running_state(one), running_state(other)
    for state, address in zip(states, ("10.0.0.1", "10.0.0.2"), strict=True):
        state.host_ip, state.pod_ip = "192.168.0.1", address
        state.main[0].end(0, at(3))
    mine, theirs = (status_of(each, state, at(3)) for each, state in zip((one, other), states, strict=True))

    assert mine != theirs
    assert status_with_identity(mine, "v", "192.168.0.1", "10.0.0.2") == theirs
