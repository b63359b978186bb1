"""Effects of events on the jobs of a workload: lost work, resubmission and failure."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import batkube
from batkube.cli.main import main
from batkube.kernel.errors import InputError
from batkube.simulation.run import Run

FILES = ("jobs.csv", "schedule.csv", "pods.csv", "machine_states.csv", "journal.jsonl")


def workload(folder: Path, *jobs: tuple[float, int, float]) -> Path:
    """Write a workload of jobs (submission, machines, run time) named 0, 1, …, and return its file."""
    entries = [
        {"id": str(number), "subtime": submit, "res": size, "profile": str(number), "walltime": 2 * length}
        for number, (submit, size, length) in enumerate(jobs)
    ]
    profiles = {str(number): {"type": "delay", "delay": length} for number, (_, _, length) in enumerate(jobs)}
    path = folder / "workload.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": entries, "profiles": profiles}), encoding="utf-8")
    return path


def run(folder: Path, events: object, *jobs: tuple[float, int, float], platform: str = "4x1", **more: object) -> Run:
    scheduler = str(more.pop("scheduler", "policy:easy"))
    path = workload(folder, *jobs)
    return batkube.run(
        workload=path, platform=platform, scheduler=scheduler, events=events, out=folder / "out", force=True, **more
    )


def happenings(results: Run) -> list[tuple[float, str]]:
    lines = (results.path / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [(entry["t"] / 1e9, entry["event"]) for entry in map(json.loads, lines)]


def test_a_job_restarts_after_a_node_failure_and_its_work_is_lost(tmp_path: Path) -> None:
    results = run(tmp_path, [{"at": 60, "fail": "node-1", "for": 1000}], (0, 2, 100))

    (job,) = results.jobs.to_dict("records")
    assert (job["starting_time"], job["finish_time"], job["allocated_resources"]) == (60, 160, "0 2")
    assert (job["attempts"], job["evictions"], job["work_lost"]) == (2, 0, 120)
    assert results.schedule["work_lost"] == 120
    lost = results.pods[results.pods["last_reason"] == "NodeLost"]
    assert list(lost["finished"]) == [60, 60]
    assert happenings(results)[3:5] == [(60, "fail"), (60, "resubmit")]
    assert results.metrics.work_lost_s == 120


def test_a_job_fails_with_its_node_under_on_failure_fail(tmp_path: Path) -> None:
    results = run(tmp_path, [{"at": 60, "fail": "node-1"}], (0, 2, 100), on_failure="fail")

    (job,) = results.jobs.to_dict("records")
    assert (job["final_state"], job["finish_time"]) == ("COMPLETED_FAILED", 60)
    assert (job["attempts"], job["work_lost"]) == (1, 120)


def test_a_job_that_ends_at_the_instant_of_a_failure_succeeds(tmp_path: Path) -> None:
    results = run(tmp_path, [{"at": 100, "fail": "all"}], (0, 4, 100))

    assert list(results.jobs["final_state"]) == ["COMPLETED_SUCCESSFULLY"]
    assert list(results.jobs["work_lost"]) == [0]


def test_a_job_on_a_removed_machine_is_resubmitted(tmp_path: Path) -> None:
    results = run(tmp_path, [{"at": 60, "remove": "node-0"}], (0, 2, 100))

    (job,) = results.jobs.to_dict("records")
    assert (job["starting_time"], job["allocated_resources"], job["work_lost"]) == (60, "1-2", 120)


def test_a_drained_node_runs_no_jobs_until_it_is_uncordoned(tmp_path: Path) -> None:
    events = [{"at": 60, "drain": "node-0", "for": 500}]
    results = run(tmp_path, events, (0, 1, 100), (70, 4, 10))

    first, second = results.jobs.to_dict("records")
    assert (first["starting_time"], first["allocated_resources"], first["evictions"]) == (60, "1", 1)
    assert (second["starting_time"], second["allocated_resources"]) == (560, "0-3")


def test_a_reclaimed_node_is_drained_and_its_job_resubmitted(tmp_path: Path) -> None:
    results = run(tmp_path, [{"at": 60, "reclaim": "node-0", "notice": 120}], (0, 1, 100))

    assert [event for _, event in happenings(results)][3:] == ["drain", "resubmit", "bind", "start", "finish"]
    assert list(results.jobs["allocated_resources"]) == ["1"]


def test_added_machines_run_jobs(tmp_path: Path) -> None:
    results = run(tmp_path, [{"at": 50, "add": "2x1", "names": "spot"}], (0, 6, 10))

    assert list(results.jobs["starting_time"]) == [50]
    assert list(results.jobs["allocated_resources"]) == ["0-5"]
    states = results.machine_states
    assert list(states["nb_unavailable"]) == [2, 0, 0]


@pytest.mark.parametrize("scheduler", ["policy:fcfs", "policy:easy", "policy:conservative", "policy:sjf"])
def test_batsims_machine_events_affect_only_jobs_that_have_not_started(tmp_path: Path, scheduler: str) -> None:
    path = tmp_path / "events.txt"
    path.write_text(
        '{"timestamp": 10, "type": "machine_unavailable", "resources": "0-2"}\n'
        '{"timestamp": 200, "type": "machine_available", "resources": "1-2"}\n',
        encoding="utf-8",
    )
    results = run(tmp_path, path, (0, 2, 100), (20, 2, 50), (30, 1, 50), scheduler=scheduler)

    running, large, small = results.jobs.to_dict("records")
    assert (running["finish_time"], running["allocated_resources"]) == (100, "0-1")
    assert (large["starting_time"], large["allocated_resources"]) == (200, "1-2")
    assert small["allocated_resources"] == "3"


def test_down_machines_are_neither_idle_nor_computing(tmp_path: Path) -> None:
    events = [{"at": 10, "fail": "node-3", "for": 20}, {"at": 15, "cordon": "0-1", "for": 30}]
    results = run(tmp_path, events, (0, 1, 50))

    states = results.machine_states[["time", "nb_idle", "nb_computing", "nb_unavailable"]].to_numpy().tolist()
    assert states == [[0, 3, 1, 0], [10, 2, 1, 1], [15, 1, 1, 2], [30, 2, 1, 1], [45, 3, 1, 0], [50, 4, 0, 0]]
    assert results.schedule["time_unavailable"] == 20 + 30
    assert results.schedule["time_idle"] == 4 * 50 - 50 - 50


def test_endless_events_do_not_keep_a_run_alive_whose_jobs_cannot_start(tmp_path: Path) -> None:
    events = [{"at": 1, "remove": "node-0"}, {"between": "exponential:100", "fail": "node-1", "for": 10}]

    with pytest.raises(batkube.RunFailed, match="left 1 of 1 jobs without an outcome"):
        run(tmp_path, events, (5, 4, 10))


def test_events_after_the_end_of_a_run_are_noted(tmp_path: Path) -> None:
    events = [
        {"at": 5, "cordon": "node-3"},
        {"at": 500, "fail": "node-1"},
        {"at": 600, "every": 10, "cordon": "node-2", "for": 5},
        {"between": "exponential:100000", "fail": "node-0", "for": 10},
    ]

    results = run(tmp_path, events, (0, 1, 10))

    notes = json.loads((results.path / "fidelity.json").read_text())
    [note] = [note for note in notes if "still pending" in note["message"]]
    assert (note["subject"], note["count"], note["example"]) == ("events", 2, "batkube.run: events[1]")


def test_random_failures_depend_on_the_seed_only(tmp_path: Path) -> None:
    events = [{"between": "exponential:3000", "fail": "all", "for": "uniform:10,600"}]
    jobs = [(20.0 * number, 1 + number % 4, 30 + 7 * number % 90) for number in range(100)]
    texts = []
    for number, seed in enumerate((1, 1, 2)):
        (tmp_path / str(number)).mkdir()
        results = run(tmp_path / str(number), events, *jobs, seed=seed)
        texts.append([(results.path / name).read_bytes() for name in FILES])

    assert texts[0] == texts[1]
    assert texts[0] != texts[2]
    assert results.schedule["work_lost"] > 0


@pytest.mark.parametrize("controllers", ["none", "ours", "kube-controller-manager@1.34.4"])
def test_jobs_of_a_failed_node_restart_at_once_or_when_controllers_evict_their_pods(
    tmp_path: Path, controllers: str, built_program: Callable[[str], str]
) -> None:
    is_real = "@" in controllers
    programs = {"scheduler": "kube-scheduler@1.34.4", "controllers": built_program(controllers)} if is_real else {}
    results = run(tmp_path, [{"at": 60, "fail": "node-1"}], (0, 2, 1000), **{"controllers": controllers, **programs})

    (job,) = results.jobs.to_dict("records")
    # With controllers: unknown at 105.1 s (the last renewal was at 50 s), tainted by 105.2 s, evicted 300 s later.
    assert job["starting_time"] == pytest.approx(60 if controllers == "none" else 405.2, abs=0.01)
    assert (job["attempts"], job["work_lost"]) == (2, 120)


def test_a_node_that_returns_within_the_grace_period_reports_its_jobs_as_failed(tmp_path: Path) -> None:
    results = run(tmp_path, [{"at": 60, "fail": "node-1", "for": 30}], (0, 2, 1000), controllers="ours")

    (job,) = results.jobs.to_dict("records")
    assert (job["starting_time"], job["attempts"], job["work_lost"]) == (90, 2, 120)


_NODE = st.sampled_from([f"node-{number}" for number in range(4)])
_LASTING = st.sampled_from(["fail", "cordon", "drain", "remove", "reclaim"])
_EVENT = st.builds(
    lambda at, deed, node, lasts: {"at": at, deed: node, "for": lasts},
    st.integers(0, 400),
    _LASTING,
    _NODE,
    st.integers(1, 200),
)
_CHANCE = st.builds(
    lambda mean, deed, lasts: {"between": f"exponential:{mean}", deed: "all", "for": lasts, "until": 2000},
    st.integers(50, 500),
    _LASTING,
    st.integers(1, 100),
)
_JOBS = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 4), st.integers(1, 120)), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(_EVENT, max_size=6),
    chance=st.lists(_CHANCE, min_size=1, max_size=2),
    jobs=_JOBS,
    policy=st.sampled_from(["fcfs", "easy", "conservative"]),
    on_failure=st.sampled_from(["resubmit", "fail"]),
)
def test_under_any_timeline_every_job_has_one_outcome_and_work_lost_sums_its_lost_attempts(
    tmp_path: Path, events: list, chance: list, jobs: list, policy: str, on_failure: str
) -> None:
    results = run(
        tmp_path, [*events, *chance], *sorted(jobs), scheduler=f"policy:{policy}", on_failure=on_failure, seed=3
    )

    assert sorted(results.jobs["job_id"]) == sorted(str(number) for number in range(len(jobs)))
    assert (results.jobs["work_lost"] >= 0).all()
    assert not any(note["severity"] == "violation" for note in json.loads((results.path / "fidelity.json").read_text()))
    pods = results.pods
    for job in results.jobs.to_dict("records"):
        own = pods[pods["job_id"] == job["job_id"]]
        lost = own[own["last_reason"].isin(["NodeLost", "Preempted"]) & own["started"].notna()]
        # Instants are written in whole microseconds, so each attempt's length may be off by one.
        exact = pytest.approx((lost["finished"] - lost["started"]).sum(), abs=1e-6 * (1 + len(lost)))
        assert job["work_lost"] == exact
    assert results.schedule["work_lost"] == pytest.approx(results.jobs["work_lost"].sum())
    _check_no_machine_is_shared(results)


def _check_no_machine_is_shared(results: Run) -> None:
    """Check that no two pods used one machine at the same time, and none used it while it was down."""
    down: dict[str, list[list[float]]] = {}
    for line in (results.path / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["event"] in ("fail", "remove"):
            for node in entry["nodes"].split():
                down.setdefault(node, []).append([entry["t"] / 1e9, float("inf")])
        elif entry["event"] in ("return", "add"):
            for node in entry["nodes"].split():
                # A node that failed, was removed and came back is a new one: both times are over.
                for times in down[node]:
                    times[1] = min(times[1], entry["t"] / 1e9)
    pods = results.pods[results.pods["started"].notna()].sort_values(["machine", "started"])
    for _, own in pods.groupby("machine"):
        assert (own["finished"].to_numpy()[:-1] <= own["started"].to_numpy()[1:]).all()
        for pod in own.to_dict("records"):
            for begin, end in down.get(pod["node"], []):
                assert pod["finished"] <= begin + 1e-5 or pod["started"] >= end - 1e-5


WRONG = {
    '[{"at": -1, "fail": "node-0"}]': "at: is -1, which is negative",
    '[{"at": 1, "fail": "nobody"}]': "names node 'nobody', which does not exist",
    '[{"at": 1, "explode": "node-0"}]': "has no known action (its keys: explode)",
    '[{"at": 1, "return": "node-0"}]': "repairs 'node-0', which has not failed",
    '[{"between": "gauss:1", "fail": "node-0"}]': "'gauss' is not a distribution",
    '[{"at": 1, "scale": "Starship/web", "to": 3}]': "refers to the kind 'Starship', which the API does not serve",
    '[{"at": 1, "apply": {"apiVersion": "v7", "kind": "Starship", "metadata": {"name": "x"}}}]': "no matches for kind",
    '[{"at": 1, "apply": {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "X Y"}, "spec": {}}}]': (
        "is rejected by the API"
    ),
}


@pytest.mark.parametrize("text", list(WRONG))
def test_invalid_events_are_reported_in_one_message_with_exit_code_2(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workload(tmp_path, (0, 1, 10))
    (tmp_path / "events.json").write_text(text, encoding="utf-8")
    arguments = ["--workload", str(path), "--platform", "4x1", "--events", str(tmp_path / "events.json")]
    monkeypatch.setattr("sys.argv", ["batkube", "run", *arguments, "--out", str(tmp_path / "out")])

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert WRONG[text] in message
    assert str(tmp_path / "events.json") in message
    assert "Traceback" not in message
    assert sorted(one.name for one in tmp_path.iterdir()) == ["events.json", "workload.json"]


def test_an_invalid_event_in_a_scenario_is_reported_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"events\[0\]\.fail: names node 'nobody'"):
        run(tmp_path, [{"at": 1, "fail": "nobody"}], (0, 1, 10))


def test_kube_scheduler_avoids_a_failed_node_and_two_runs_are_identical(
    tmp_path: Path, built_program: Callable[[str], str]
) -> None:
    events = [{"at": 60, "fail": "node-1", "for": 1000}, {"at": 65, "drain": "node-0", "for": 40}]
    jobs = [(0, 1, 100)] * 4
    texts = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        results = run(tmp_path / str(number), events, *jobs, scheduler=built_program("kube-scheduler@1.34.4"))
        texts.append([(results.path / name).read_bytes() for name in FILES])

    assert texts[0] == texts[1]
    assert set(results.jobs["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    assert sorted(results.jobs["attempts"]) == [1, 1, 2, 2]
    assert sorted(results.jobs["work_lost"]) == [0, 0, 60, 65]
    assert {event for _, event in happenings(results)} >= {"fail", "drain", "uncordon", "resubmit"}


def test_with_controllers_pods_of_a_removed_machine_are_garbage_collected(tmp_path: Path) -> None:
    results = run(tmp_path, [{"at": 63, "remove": "node-1"}], (0, 2, 1000), controllers="ours", on_failure="fail")

    (job,) = results.jobs.to_dict("records")
    # The collector of lost pods finds them in its check at 80.1 s, and deletes them in the check 40 s later.
    assert (job["final_state"], job["finish_time"]) == ("COMPLETED_FAILED", 120.1)
    assert (job["attempts"], job["work_lost"]) == (1, 126)


def test_objects_are_applied_scaled_and_deleted_by_events(tmp_path: Path) -> None:
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
    events = [
        {"at": 10, "apply": web},
        {"at": 20, "scale": "deployment/web", "to": 3},
        {"at": 30, "delete": "Deployment/web"},
    ]
    results = run(tmp_path, events, (0, 1, 100), resources="requests")

    pods = results.pods[results.pods["owner"].str.startswith("ReplicaSet/web")]
    assert sorted(pods["created"].round(1)) == [10, 20, 20]
    assert (pods["finished"].round(1) == 30).all()
    lines = [json.loads(line) for line in (results.path / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    told = [(line["event"], line["object"]) for line in lines if line["event"] in ("apply", "scale", "delete")]
    assert told == [(deed, "Deployment default/web") for deed in ("apply", "scale", "delete")]
