"""The state of containers and of their pod: phases, restarts, back-off and node failures."""

from __future__ import annotations

from typing import Any

import pytest

from batkube.cluster.store import Key
from batkube.execution.pods.container_plan import ContainerPlan
from batkube.execution.pods.state import ContainerState, EndedRun, PodState, Stage
from batkube.kernel.instants import START, Duration, Instant, seconds


def at(second: float) -> Instant:
    return Instant(START + seconds(second))


def state_of(*, init: tuple[dict[str, Any], ...] = (), count: int = 1, policy: str = "Always") -> PodState:
    containers = [{"name": f"c{number}", "image": "web:1"} for number in range(count)]
    spec: dict[str, Any] = {"nodeName": "n", "containers": containers, "restartPolicy": policy}
    if init:
        spec["initContainers"] = list(init)
    return PodState(Key("x/p"), {"metadata": {"name": "p", "uid": "u"}, "spec": spec}, (), START)


def run(container: ContainerState, start: float, end: float | None = None, exit_code: int = 0) -> None:
    container.start(ContainerPlan(None), None, at(start))
    if end is not None:
        container.end(exit_code, at(end))


def test_a_pod_is_pending_until_a_main_container_has_started() -> None:
    """Phase Pending includes the run of init containers (concepts/workloads/pods/pod-lifecycle, "Pod phase")."""
    pod = state_of(init=({"name": "i"},))
    run(pod.init[0], 1)
    assert (pod.phase, pod.has_started) == ("Pending", True)

    pod.init[0].end(0, at(2))
    run(pod.main[0], 3)
    assert pod.phase == "Running"


@pytest.mark.parametrize(("codes", "phase"), [((0, 0), "Succeeded"), ((0, 3), "Failed"), ((1, 0), "Failed")])
def test_an_ended_pod_has_succeeded_if_all_its_containers_have(codes: tuple[int, int], phase: str) -> None:
    pod = state_of(count=2, policy="Never")
    for container, code in zip(pod.main, codes, strict=True):
        run(container, 1, 2, code)
    assert pod.phase == "Running"
    assert pod.has_ended_main

    pod.has_ended = True
    assert pod.phase == phase


def test_the_exit_code_of_a_sidecar_does_not_matter_and_a_reason_makes_the_pod_fail() -> None:
    pod = state_of(init=({"name": "s", "restartPolicy": "Always"},), policy="Never")
    run(pod.init[0], 1, 5, 143)
    run(pod.main[0], 2, 4)
    pod.has_ended = True
    assert pod.phase == "Succeeded"

    pod.reason = "DeadlineExceeded"
    assert pod.phase == "Failed"


def test_init_containers_run_one_after_another_and_a_sidecar_blocks_only_until_it_is_up() -> None:
    pod = state_of(init=({"name": "s", "restartPolicy": "Always"}, {"name": "i"}, {"name": "j"}))
    names = lambda: [container.name for container in pod.unfinished_init() if not container.is_done]  # noqa: E731
    run(pod.init[0], 1)
    assert names() == ["s", "i", "j"]

    pod.init[0].mark_up()
    assert names() == ["i", "j"]

    run(pod.init[1], 2, 3, exit_code=1)
    assert names() == ["i", "j"]
    run(pod.init[1], 4, 5)
    assert names() == ["j"]
    # A sidecar is always considered again, because it is restarted as long as the pod runs.
    assert next(iter(pod.unfinished_init())).name == "s"


@pytest.mark.parametrize(
    ("policy", "restarts"),
    [("Always", (True, True)), ("OnFailure", (False, True)), ("Never", (False, False))],
)
def test_the_restart_policy_decides_after_success_and_failure(policy: str, restarts: tuple[bool, bool]) -> None:
    pod = state_of(init=({"name": "i"}, {"name": "s", "restartPolicy": "Always"}), policy=policy)
    (main,), (init, sidecar) = pod.main, pod.init
    for code, expected in zip((0, 1), restarts, strict=True):
        run(main, 1, 2, code)
        assert main.restarts_after(pod.restart_policy) is expected
        run(sidecar, 1, 2, code)
        assert sidecar.restarts_after(pod.restart_policy)
    run(init, 1, 2)
    assert not init.restarts_after(pod.restart_policy), "an init container that has succeeded is done"


def test_the_back_off_doubles_to_five_minutes() -> None:
    (container,) = state_of().main
    end, waits = 0.0, []
    for _ in range(8):
        end += 1
        run(container, end - 1, end, exit_code=1)
        waits.append(container.next_back_off(at(end)) / 1e9)
        end += waits[-1]

    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]


def test_only_a_run_of_more_than_ten_minutes_resets_the_back_off() -> None:
    """concepts/workloads/pods/pod-lifecycle, "Container restarts"; the back-off before a run is not part of it."""
    (container,) = state_of().main
    for start in (0, 10):
        run(container, start, start + 1, exit_code=1)
        container.next_back_off(at(start + 1))
    # The previous run ended 989 s before this one does.
    run(container, 400, 1000)
    assert container.next_back_off(at(1000)) == seconds(20)

    run(container, 1020, 1621)
    assert container.next_back_off(at(1621)) == 0
    run(container, 1621, 1622)
    assert container.next_back_off(at(1622)) == seconds(10)


def test_a_restarted_container_counts_the_restart_and_keeps_its_last_run() -> None:
    (container,) = state_of().main
    run(container, 1, 4, exit_code=2)
    container.set_waiting("CrashLoopBackOff", "back-off 10s")

    assert container.stage is Stage.WAITING
    assert container.last_run == EndedRun(at(1), at(4), 2)
    run(container, 14)
    assert (container.restarts, container.stage, container.message) == (1, Stage.RUNNING, "")


def test_a_container_that_waits_for_a_restart_ends_as_its_previous_run_did() -> None:
    (container,) = state_of().main
    run(container, 1, 4, exit_code=2)
    container.set_waiting("CrashLoopBackOff", "")
    container.end(137, at(9))

    assert container.ended_run == EndedRun(at(1), at(4), 2)


def test_a_container_that_never_ran_keeps_waiting_when_its_pod_is_stopped() -> None:
    (container,) = state_of().main
    container.end(137, at(9))

    assert container.stage is Stage.WAITING


def test_a_run_is_lost_with_its_node_and_counts_as_a_restart() -> None:
    """containerd reports exit code 255 for a process whose end it did not observe."""
    before, after = state_of(count=2, policy="OnFailure"), state_of(count=2, policy="OnFailure")
    run(before.main[0], 1)
    run(before.main[1], 1, 2)
    after.restore_from(before, at(60))

    running, ended = after.main
    assert (running.stage, running.restarts) == (Stage.WAITING, 1)
    assert running.last_run == EndedRun(at(1), at(60), 255)
    assert (ended.stage, ended.restarts) == (Stage.TERMINATED, 0)
    assert after.admitted == before.admitted


def test_a_resize_takes_effect_at_the_age_of_the_run() -> None:
    (container,) = state_of().main
    run(container, 10)
    container.allocated = {"limits": {"memory": "2Mi"}}
    assert container.actual == {}

    container.apply_resize(at(25))
    assert (container.actual, container.resized_after) == (container.allocated, Duration(seconds(15)))


def test_ephemeral_containers_are_added_once_and_do_not_affect_the_phase() -> None:
    pod = state_of(policy="Never")
    debugged = {"spec": {"containers": [], "ephemeralContainers": [{"name": "debug"}]}}
    pod.add_ephemeral(debugged)
    pod.add_ephemeral(debugged)
    run(pod.ephemeral[0], 1, 2, exit_code=1)
    run(pod.main[0], 1, 2)
    pod.has_ended = True

    assert [container.name for container in pod.ephemeral] == ["debug"]
    assert pod.phase == "Succeeded"
