"""The playback of real runs agrees with their tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.outputs.playback.saturated_runs import EVENTS, a_run

from batkube.kernel.errors import InputError
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant
from batkube.kernel.quantities import CPU, MACHINE, MEMORY
from batkube.outputs.playback.model import NodeStatus
from batkube.outputs.playback.playback import Playback
from batkube.outputs.playback.states import State


@pytest.fixture(scope="module", params=["machines", "requests", "events", "latencies"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Playback:
    folder = tmp_path_factory.mktemp(request.param)
    latencies = folder / "latencies.yaml"
    latencies.write_text("start: uniform:0.1,2.3\nreport: uniform:0.1,1.7\n")
    options: dict[str, dict[str, object]] = {
        "machines": {},
        "requests": {"resources": "requests"},
        "events": {"events": EVENTS},
        "latencies": {"latencies": latencies},
    }
    return Playback.read(a_run(folder / "out", **options[request.param]))


def states(run: Playback) -> Iterator[tuple[Instant, Instant, State]]:
    """Yield each period without changes, with the state in it."""
    fold = run.fold()
    for delta, following in pairwise([*run.deltas, None]):
        assert delta is not None
        fold.apply(delta)
        until = run.end if following is None else following.at
        if until > delta.at:
            yield delta.at, until, fold.state()


def test_the_deltas_lead_to_the_state_at_every_instant(run: Playback) -> None:
    assert all(run.state_at(at) == state for at, _, state in states(run))


def test_utilisation_integrates_to_that_of_the_schedule(run: Playback) -> None:
    begin, end = (round(float(run.files.schedule[f"measured_{edge}"]) * 1e9) for edge in ("from", "until"))
    used = offered = 0
    for since, until, state in states(run):
        length = max(0, min(until, end) - max(since, begin))
        used += length * sum(node.used.get(run.main_resource, 0) for node in state.nodes.values())
        present = [node for node in run.nodes if node.name in state.nodes]
        offered += length * sum(node.capacity[run.main_resource] for node in present)

    assert used / offered == pytest.approx(run.files.schedule["mean_utilisation"], abs=2e-6)


def test_the_number_of_waiting_jobs_integrates_to_their_waiting_times(run: Playback) -> None:
    waited = sum((until - since) * len(state.waiting_jobs) for since, until, state in states(run))

    jobs = run.files.jobs
    if (jobs["attempts"] == 1).all():
        assert waited / NANOSECONDS_PER_SECOND == pytest.approx(jobs["waiting_time"].sum(), abs=1e-3)
    else:
        assert waited > 0


def test_busy_nodes_are_those_of_machine_states(run: Playback) -> None:
    computing = run.files.machine_states.set_index("time")["nb_computing"]
    for since, until, state in states(run):
        busy = sum("pods" in node.used for node in state.nodes.values())
        rows = computing[computing.index <= since / NANOSECONDS_PER_SECOND]
        if len(rows) and until - since > 1000:
            assert busy == rows.iloc[-1], since


def test_nodes_have_statuses_and_periods_of_events(tmp_path: Path) -> None:
    run = Playback.read(a_run(tmp_path / "out", events=EVENTS))
    nodes = {node.name: node for node in run.nodes}

    def status(node: str, time_s: int) -> NodeStatus | None:
        at = Instant(time_s * NANOSECONDS_PER_SECOND)
        return nodes[node].status_at(at) if nodes[node].exists(at) else None

    assert [status("node-3", time_s) for time_s in (199, 200, 500)] == ["ready", "failed", "ready"]
    assert [status("node-1", time_s) for time_s in (399, 400, 640)] == ["ready", "cordoned", "ready"]
    assert [status("spot-0", time_s) for time_s in (599, 600, 959, 960)] == [None, "ready", "ready", None]
    assert nodes["spot-1"].capacity == {CPU: 4000, MEMORY: 8 * 2**30, "pods": 110, MACHINE: 1}


def test_a_job_that_was_evicted_has_an_execution_for_each_attempt(tmp_path: Path) -> None:
    run = Playback.read(a_run(tmp_path / "out", events=[{"at": 300, "fail": "0-3", "for": "5m"}]))
    attempts = {job.key: len(job.executions) for job in run.jobs}

    assert max(attempts.values()) > 1
    table = run.files.jobs
    assert {f"w0!{name}": count for name, count in zip(table["job_id"], table["attempts"], strict=True)} == attempts
    assert all(len(job.pods) == job.size * len(job.executions) for job in run.jobs if job.size)


@settings(max_examples=12, deadline=None)
@given(
    policy=st.sampled_from(["fcfs", "conservative", "priority"]),
    action=st.sampled_from(["fail", "drain", "remove"]),
    at_s=st.integers(0, 1200),
    length_s=st.integers(1, 900),
)
def test_the_playback_of_any_run_is_consistent(
    tmp_path_factory: pytest.TempPathFactory, policy: str, action: str, at_s: int, length_s: int
) -> None:
    events = [{"at": at_s, action: "0-3", "for": length_s}]
    run = Playback.read(a_run(tmp_path_factory.mktemp("any") / "out", policy, events=events))

    assert all(run.state_at(at) == state for at, _, state in states(run))
    for _, _, state in states(run):
        assert all(node.used.get(MACHINE, 0) <= 1 for node in state.nodes.values())


@pytest.mark.parametrize("omitted", ["journal.jsonl", "pods.csv"])
def test_a_run_without_its_journal_or_pods_is_refused_with_the_command_that_repeats_it(
    tmp_path: Path, omitted: str
) -> None:
    others = [name for name in ("pods.csv", "machine_states.csv", "journal.jsonl") if name != omitted]
    folder = a_run(tmp_path / "out", outputs=others)

    with pytest.raises(InputError, match=f"{omitted} was left out.*") as error:
        Playback.read(folder)
    assert "batkube rerun" in str(error.value)


def test_a_run_of_an_earlier_version_gets_its_nodes_from_the_manifest(tmp_path: Path) -> None:
    folder = a_run(tmp_path / "out", events=EVENTS)
    run = Playback.read(folder)
    (folder / "nodes.csv").unlink()

    assert Playback.read(folder).nodes == run.nodes


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("journal.jsonl", '{"t":', "{t", "line 1"),
        ("journal.jsonl", '"event"', '"even"', "no `event`"),
        ("pods.csv", "Succeeded,1", "Succeeded,one", "'one' is not a whole number"),
        ("pods.csv", "attempts", "tries", None),
        ("nodes.csv", "4.000", "four", "'four' is not a quantity"),
        ("nodes.csv", "created", "made", "lacks the column created"),
        ("jobs.csv", "starting_time", "start", "lacks the column"),
    ],
)
def test_a_damaged_file_is_refused_with_its_place(
    tmp_path: Path, name: str, old: str, new: str, problem: str | None
) -> None:
    folder = a_run(tmp_path / "out")
    path = folder / name
    path.write_text(path.read_text().replace(old, new, 1))

    if problem is None:
        assert Playback.read(folder).pods[0].attempts == 0
        return
    with pytest.raises(InputError, match=problem) as error:
        Playback.read(folder)
    assert name in str(error.value)
