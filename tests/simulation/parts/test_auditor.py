"""Audits of runs: correct caches have no differences, wrong ones are reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests import published
from tests.opt_in import require_built

import batkube
from batkube.cluster.store import ADDED, Batch, Key
from batkube.joining.audit_files import AuditFiles
from batkube.kernel.instants import Instant
from batkube.kubeflux.scheduler_cache import NodeAccount
from batkube.policies.runtime.policy_scheduler import PolicyScheduler
from batkube.simulation.parts.kubeflux_audit import KubeFluxAuditReader

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
BURST = EXAMPLES / "burst" / "workload.json"
FAILURES = {
    "workload": EXAMPLES / "failures" / "workload.json",
    "platform": "6x1",
    "on_failure": "resubmit",
    "events": [
        {"between": "exponential:1200", "fail": "0-3", "for": "uniform:60,300"},
        {"at": "10m", "drain": "node-4", "for": "5m"},
    ],
    "seed": 1,
}


def audit_of(out: Path) -> tuple[dict[str, int], list[dict[str, object]]]:
    """Return the summary of an audit and the differences of caches."""
    head, *lines = [json.loads(line) for line in (out / "audit.jsonl").read_text().splitlines()]
    return head, [line for line in lines if line["kind"] != "left waiting"]


@pytest.mark.parametrize("policy", ["easy", "conservative", "fluxion"])
@pytest.mark.parametrize("case", [{"workload": BURST, "platform": "16x1"}, FAILURES], ids=["burst", "failures"])
def test_caches_of_policies_equal_the_cluster(policy: str, case: dict[str, object], tmp_path: Path) -> None:
    out = tmp_path / "out"
    batkube.run(scheduler=f"policy:{policy}", out=out, audit="60s", **case)  # type: ignore[arg-type]

    head, lines = audit_of(out)

    assert head["count"] > 30
    assert lines == []


def test_a_policy_that_misses_the_end_of_a_pod_has_a_phantom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, workload, hear = tmp_path / "out", tmp_path / "jobs.json", PolicyScheduler._handle_execution_pods

    def deaf_to_one_end(self: PolicyScheduler, batch: Batch, now: Instant) -> bool:
        is_end_of_1 = batch.type is not ADDED and "default/w0-1" in batch.keys
        return False if is_end_of_1 else hear(self, batch, now)

    monkeypatch.setattr(PolicyScheduler, "_handle_execution_pods", deaf_to_one_end)
    profiles = {"short": {"type": "delay", "delay": 100}, "long": {"type": "delay", "delay": 300}}
    jobs = [
        {"id": "1", "subtime": 0, "res": 1, "profile": "short"},
        {"id": "2", "subtime": 0, "res": 1, "profile": "long"},
    ]
    workload.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}), encoding="utf-8")
    batkube.run(workload=workload, platform="4x1", scheduler="policy:fcfs", out=out, audit="10s")

    _, lines = audit_of(out)
    assert [(line["kind"], line["pod"], line["at"], line["is"]) for line in lines] == [
        ("phantom", "default/w0-1", 100_010_000_000, "new")
    ]
    journal = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    [line] = [line for line in journal if line["event"] == "differ"]
    assert line == {
        "t": 100_010_000_000,
        "event": "differ",
        "kind": "phantom",
        "node": "node-0",
        "pod": "default/w0-1",
        "since": 100_010_000_000,
    }
    assert "the cache of a scheduler differed from the cluster" in (out / "fidelity.json").read_text()


def test_differences_that_kubeflux_reports_are_in_the_audit_and_the_journal(tmp_path: Path) -> None:
    out = tmp_path / "out"
    batkube.run(
        workload=EXAMPLES / "kubeflux" / "pods.yaml",
        platform="2x2,8Gi",
        scheduler=["kubeflux", "others=policy-program --policy=first-fit"],
        scheduler_args={"sync": "none"},
        audit="60s",
        out=out,
    )

    _, lines = audit_of(out)

    assert [line["pod"] for line in lines if line["is"] == "new"] == ["default/w0-b", "default/w0-a", "default/w0-c"]
    journal = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    told = [
        (line["event"], line["kind"], line["pod"], line.get("amounts"), line["since"])
        for line in journal
        if "since" in line
    ]
    whole = "cpu=2000 pods=1"
    assert [line for line in told if line[2] == "default/w0-b"] == [
        ("differ", "blind spot", "default/w0-b", whole, 10_002_000_000),
        ("agree", "blind spot", "default/w0-b", whole, 10_002_000_000),
    ]


def test_differences_that_kubeflux_cannot_detect_are_added(tmp_path: Path) -> None:
    written = KubeFluxAuditReader(tmp_path / "kubeflux" / "audit.jsonl")
    (tmp_path / "kubeflux").mkdir()
    demand = {"cpu": 1000}
    with AuditFiles(tmp_path / "kubeflux" / "audit.jsonl") as files:
        # It has one phantom pod, and has not received the end of another one.
        files.write_cache({"n0": NodeAccount(held={Key("default/a"): demand, Key("default/b"): demand})})
        files.write_differences(
            [{"kind": "phantom", "node": "n0", "pod": "default/a", "amounts": demand, "at": 5, "is": "new"}]
        )
        lines = written.check({}, Instant(9))
        again = written.check({}, Instant(10))
        files.write_cache({})
        files.write_differences(
            [{"kind": "phantom", "node": "n0", "pod": "default/a", "amounts": demand, "at": 11, "is": "over"}]
        )
        after = written.check({}, Instant(12))

    assert [(line["pod"], line["is"], line["at"], line["scheduler"]) for line in lines] == [
        ("default/a", "new", 5, "kubeflux"),
        ("default/b", "new", 9, "kubeflux"),
    ]
    assert again == []
    assert [(line["pod"], line["is"], line["at"]) for line in after] == [
        ("default/a", "over", 11),
        ("default/b", "over", 12),
    ]


@pytest.mark.parametrize("name", ["burst", "spaced", "failures"])
def test_the_cache_debugger_of_kube_scheduler_finds_no_difference(name: str, tmp_path: Path) -> None:
    require_built("kube-scheduler@1.34.4")
    out = tmp_path / "out"
    case = FAILURES if name == "failures" else {"workload": published.WORKLOADS[name](tmp_path), "platform": "16x1"}
    batkube.run(scheduler="kube-scheduler@1.34.4", out=out, audit="60s", **case)  # type: ignore[arg-type]

    head, lines = audit_of(out)

    assert head["count"] > 30
    assert (head["unanswered"], head["unsettled"]) == (0, 0)
    assert lines == []


def test_the_report_lists_the_differences_of_an_audit(tmp_path: Path) -> None:
    from batkube.outputs.report.document import write_run_report

    out = tmp_path / "out"
    batkube.run(workload=BURST, platform="16x1", scheduler="policy:easy", out=out, audit="60s")
    assert "There was no difference." in write_run_report(out, tmp_path / "none.html").read_text(encoding="utf-8")

    phantom = {"kind": "phantom", "node": "node-0", "pod": "default/a", "amounts": {}}
    lines = [
        {**phantom, "at": 60_000_000_000, "is": "new"},
        {**phantom, "at": 90_000_000_000, "is": "over", "since": 60_000_000_000},
    ]
    head = {"kind": "looks", "count": 2, "unanswered": 0}
    (out / "audit.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)), encoding="utf-8")

    page = write_run_report(out, tmp_path / "some.html").read_text(encoding="utf-8")
    assert "1 min: default/a node-0" in page
    assert "30.0" in page
