from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batkube.cluster.jobs.executions import JobExecution, JobExecutions
from batkube.cluster.jobs.outcomes import PastAttempts
from batkube.cluster.store import Key
from batkube.kernel.instants import Duration, Instant
from batkube.workloads.model import Delay, Job


def a_course(name: str, size: int) -> JobExecution:
    job = Job(workload="w0", name=name, submit=Instant(0), size=size, profile=Delay(name="d", duration=Duration(1)))
    return JobExecution(job, [Key(f"default/{name}-{rank}") for rank in range(size)], (), Instant(0), PastAttempts())


def test_the_pods_of_one_whole_gang_are_found_at_once() -> None:
    courses, course = JobExecutions(), a_course("a", 3)
    courses.add(course)

    [(whose, positions, ranks)] = courses.group_by_execution(course.keys)

    assert (whose, list(positions), list(ranks)) == (course, [0, 1, 2], [0, 1, 2])


@given(st.lists(st.sampled_from(["a-0", "a-1", "b-0", "b-1", "b-2", "stranger"]), unique=True))
def test_any_mixture_of_pods_is_told_apart_and_strangers_are_left_out(names: list[str]) -> None:
    courses = JobExecutions()
    made = {"a": a_course("a", 2), "b": a_course("b", 3)}
    for course in made.values():
        courses.add(course)
    keys = [Key(f"default/{name}") for name in names]

    found = {
        keys[position]: (course.job.name, rank)
        for course, positions, ranks in courses.group_by_execution(keys)
        for position, rank in zip(positions, ranks, strict=True)
    }

    assert found == {Key(f"default/{name}"): (name[0], int(name[-1])) for name in names if name != "stranger"}


def test_a_course_that_was_removed_is_not_found() -> None:
    courses, course = JobExecutions(), a_course("a", 2)
    courses.add(course)

    courses.remove(course)

    assert list(courses.group_by_execution(course.keys)) == []
