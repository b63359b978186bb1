from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batkube.cluster.jobs.executions import JobExecution, JobExecutions
from batkube.cluster.jobs.outcomes import PastAttempts
from batkube.cluster.store import Key
from batkube.kernel.instants import Duration, Instant
from batkube.workloads.model import Delay, Job


def an_execution(name: str, size: int) -> JobExecution:
    job = Job(workload="w0", name=name, submit=Instant(0), size=size, profile=Delay(name="d", duration=Duration(1)))
    return JobExecution(job, [Key(f"default/{name}-{rank}") for rank in range(size)], (), Instant(0), PastAttempts())


def test_all_pods_of_a_gang_are_one_group() -> None:
    executions, execution = JobExecutions(), an_execution("a", 3)
    executions.add(execution)

    [(owner, positions, ranks)] = executions.group_by_execution(execution.keys)

    assert (owner, list(positions), list(ranks)) == (execution, [0, 1, 2], [0, 1, 2])


@given(st.lists(st.sampled_from(["a-0", "a-1", "b-0", "b-1", "b-2", "stranger"]), unique=True))
def test_mixed_pods_are_grouped_by_execution_and_others_left_out(names: list[str]) -> None:
    executions = JobExecutions()
    by_name = {"a": an_execution("a", 2), "b": an_execution("b", 3)}
    for execution in by_name.values():
        executions.add(execution)
    keys = [Key(f"default/{name}") for name in names]

    members = {
        keys[position]: (execution.job.name, rank)
        for execution, positions, ranks in executions.group_by_execution(keys)
        for position, rank in zip(positions, ranks, strict=True)
    }

    assert members == {Key(f"default/{name}"): (name[0], int(name[-1])) for name in names if name != "stranger"}


def test_a_removed_execution_is_not_found() -> None:
    executions, execution = JobExecutions(), an_execution("a", 2)
    executions.add(execution)

    executions.remove(execution)

    assert list(executions.group_by_execution(execution.keys)) == []
