"""Objects of any kind in a run: applied at their times and reconciled by our controllers, on the virtual clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from batkube.kernel.errors import InputError, RunFailed
from batkube.scenarios.files import read_scenario_file
from batkube.scenarios.keys import make_scenario
from batkube.simulation.preparation.inputs import read_inputs
from batkube.simulation.run import Run, execute, run

Fields = dict[str, Any]
FILES = ("jobs.csv", "pods.csv", "schedule.csv", "machine_states.csv", "journal.jsonl", "fidelity.json")
SCHEDULERS = ["policy:fcfs", "kube-scheduler@1.34.4"]


def pod_spec(command: str = "", cpu: str = "250m", restart: str = "Never", image: str = "i") -> Fields:
    container: Fields = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
    if command:
        container["command"] = ["sh", "-c", command]
    return {"restartPolicy": restart, "containers": [container]}


def made(
    api_version: str, kind: str, name: str, spec: Fields | None = None, submit: str = "0", **more: object
) -> Fields:
    metadata = {"name": name, "annotations": {"batkube.io/submit": submit}}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **({"spec": spec} if spec else {}), **more}


def deployment(image: str, replicas: int, submit: str = "0") -> Fields:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod_spec(restart="Always", image=image)}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return made("apps/v1", "Deployment", "web", spec, submit)


def job(name: str, command: str, submit: str = "0", **spec: object) -> Fields:
    return made("batch/v1", "Job", name, {"template": {"spec": pod_spec(command)}, **spec}, submit)


def cron_job() -> Fields:
    template = {"spec": {"template": {"spec": pod_spec("sleep 60")}}}
    return made("batch/v1", "CronJob", "tick", {"schedule": "*/5 * * * *", "jobTemplate": template})


BUSY_DAY = [
    deployment("web:1", 3),
    deployment("web:2", 4, "1h"),
    cron_job(),
    job("flaky", "sleep 20; exit 1", "10m", backoffLimit=3),
    job("wide", "sleep 120", "20m", completions=6, parallelism=2),
]


@pytest.fixture
def simulate(tmp_path: Path) -> Callable[..., Run]:
    def simulated(*objects: Fields, out: str = "out", more: tuple[Path, ...] = (), **keys: Any) -> Run:  # noqa: ANN401
        path = tmp_path / "objects.yaml"
        path.write_text("---\n".join(yaml.safe_dump(one) for one in objects))
        return run(workload=[path, *more], platform="4x4,16Gi", out=tmp_path / out, **keys)

    return simulated


Simulate = Callable[..., Run]


def journal(run: Run) -> list[Fields]:
    return [json.loads(line) for line in (run.path / "journal.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_busy_day_proceeds_as_in_kubernetes_and_two_runs_are_identical(
    simulate: Simulate, built_program: Callable[[str], str], scheduler: str
) -> None:
    if not scheduler.startswith("policy:"):
        scheduler = built_program(scheduler)
    first, second = (simulate(*BUSY_DAY, out=name, scheduler=scheduler, until="3h") for name in ("one", "two"))

    jobs, pods = first.jobs.set_index("job_id"), first.pods
    # A CronJob of every five minutes: from 5 min to 2 h 55 min, each Job a moment after its minute.
    ticks = jobs[jobs.index.str.startswith("tick-")]
    assert [round(at) for at in ticks["submission_time"]] == list(range(300, 3 * 3600, 300))
    assert set(ticks["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    # A Job that fails is tried again after 10 s, 20 s, 40 s, and then no more (Kubernetes: Jobs, pod backoff).
    flaky = jobs.loc["flaky"]
    assert (flaky["final_state"], flaky["tries"]) == ("COMPLETED_FAILED", 4)
    starts = pods[pods["job_id"] == "flaky"]["created"].round().tolist()
    assert starts == [600, 600 + 20 + 10, 650 + 20, 690 + 40]
    # Two at a time, until six have succeeded; a Job is synchronized a second after its pods changed.
    wide = jobs.loc["wide"]
    assert (wide["tries"], wide["requested_number_of_resources"]) == (6, 2)
    assert round(wide["execution_time"]) == 3 * (120 + 1)
    # Scaled and then rolled out at one hour: the old pods have gone, the new ones run to the end and after.
    web = pods[pods["owner"].str.startswith("ReplicaSet/web-")].sort_values("created", kind="stable")
    is_old = web["owner"] == web["owner"].iloc[0]
    old, new = web[is_old], web[~is_old]
    assert (len(old), len(new), new["finished"].isna().all(), set(new["phase"])) == (4, 4, True, {"Running"})
    assert ((old["finished"] >= 3600) & (old["finished"] < 3700)).all()
    for name in FILES:
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes(), name


def test_until_ends_a_run_with_endless_objects(simulate: Simulate) -> None:
    run = simulate(*BUSY_DAY[:1], cron_job(), until="12h")

    ticks = run.jobs["submission_time"]
    assert (len(ticks), round(ticks.max())) == (12 * 12 - 1, 12 * 3600 - 300)
    # All pods fit on one machine, which is busy from the first of them to the end of the run.
    assert run.schedule["time_computing"] == pytest.approx(12 * 3600, abs=1)
    assert run.machine_states["nb_computing"].tolist() == [0, 1]
    assert run.manifest["result"] == "completed"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_trace_jobs_and_objects_run_side_by_side(
    simulate: Simulate, built_program: Callable[[str], str], tmp_path: Path, scheduler: str
) -> None:
    if not scheduler.startswith("policy:"):
        scheduler = built_program(scheduler)
    profiles = {"p": {"type": "delay", "delay": 100}}
    jobs = [{"id": name, "subtime": 0, "res": 2, "profile": "p", "walltime": 200} for name in ("a", "b")]
    trace = tmp_path / "jobs.json"
    trace.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))

    run = simulate(job("other", "sleep 30", completions=2), more=(trace,), scheduler=scheduler)

    rows = run.jobs.set_index(["workload_name", "job_id"])
    assert set(rows.index) == {("w0", "other"), ("w1", "a"), ("w1", "b")}
    assert set(rows["final_state"]) == {"COMPLETED_SUCCESSFULLY"}
    assert round(rows.loc["w0", "other"]["execution_time"]) == 2 * (30 + 1)
    assert (run.schedule["nb_jobs"], len(run.pods)) == (3, 2 + 4)


def test_a_run_ends_with_its_last_pod_and_job(simulate: Simulate) -> None:
    alone = made("v1", "Pod", "alone", pod_spec("sleep 40"), "1m")

    run = simulate(alone, job("once", "sleep 5"))

    (told,) = run.pods[run.pods["pod"] == "alone"].to_dict("records")
    assert (told["created"], told["finished"], told["owner"], told["workload_name"]) == (60, 100, "", "w0")
    assert run.jobs["job_id"].tolist() == ["once"]
    assert journal(run)[-1]["t"] <= 101 * 10**9


def test_objects_that_are_unfinished_at_until_are_noted(simulate: Simulate, tmp_path: Path) -> None:
    trace = tmp_path / "long.json"
    jobs = [{"id": "long", "subtime": 0, "res": 1, "profile": "p"}]
    trace.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 1000}}}))

    run = simulate(job("slow", "sleep 1000"), job("later", "true", "1h"), more=(trace,), until="10m")

    assert run.manifest["result"] == "completed"
    assert run.jobs.empty
    assert run.pods["phase"].tolist() == ["Running", "Running"]
    assert run.pods["finished"].isna().all()
    (note,) = json.loads((run.path / "fidelity.json").read_text())[-1:]
    # The trace's job, the Job, its pod, and the later objects.
    assert (note["subject"], note["count"], note["example"]) == ("until", 4, "w1!long")


def widget_definition() -> Fields:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    return made("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.org", spec)


def test_definitions_are_applied_before_custom_objects_and_a_quota_delays_a_job(simulate: Simulate) -> None:
    quota = made("v1", "ResourceQuota", "few", {"hard": {"pods": "1"}})

    run = simulate(
        made("example.org/v1", "Widget", "w", {"size": 3}),
        widget_definition(),
        quota,
        job("two", "sleep 60", completions=2, parallelism=2),
    )

    applied = [line["kind"] for line in journal(run) if line["event"] == "apply"]
    assert applied == ["CustomResourceDefinition", "Widget", "ResourceQuota", "Job"]
    assert (run.jobs["final_state"].tolist(), run.jobs["tries"].tolist()) == (["COMPLETED_SUCCESSFULLY"], [2])
    first, second = run.pods.sort_values("created").to_dict("records")
    assert second["created"] >= first["finished"]


def test_objects_without_effect_are_noted(simulate: Simulate) -> None:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    ingress = made("networking.k8s.io/v1", "Ingress", "door", {"defaultBackend": backend})
    rule = {
        "name": "x.example.org",
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
        "admissionReviewVersions": ["v1"],
    }
    hook = made("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "hook")
    hook["webhooks"] = [{**rule, "sideEffects": "None"}]

    run = simulate(widget_definition(), made("example.org/v1", "Widget", "w"), ingress, hook)

    notes = json.loads((run.path / "fidelity.json").read_text())
    assert {note["example"]: note["message"] for note in notes} == {
        "Widget default/w": "custom objects have no effect: the run has no controller for them",
        "Ingress door": "an Ingress or NetworkPolicy was stored but has no effect: network traffic is not modelled",
        "ValidatingWebhookConfiguration hook": "a webhook configuration was stored, but webhooks are not called",
    }


@pytest.mark.parametrize(("scheduler", "waited_s"), [("policy:fcfs", 0), ("kube-scheduler@1.34.4", 600)])
def test_a_run_with_programs_waits_for_changes_of_a_custom_object(
    simulate: Simulate, built_program: Callable[[str], str], scheduler: str, waited_s: float
) -> None:
    if waited_s:
        scheduler = built_program(scheduler)

    run = simulate(widget_definition(), made("example.org/v1", "Widget", "w"), scheduler=scheduler, patience="10m")

    assert run.manifest["result"] == "completed"
    assert waited_s <= run.manifest["end_s"] <= waited_s + 60


def test_an_object_that_exceeds_a_quota_is_noted_and_the_run_continues(simulate: Simulate) -> None:
    quota = made("v1", "ResourceQuota", "few", {"hard": {"pods": "1"}})
    pods = [made("v1", "Pod", name, pod_spec("sleep 60"), at) for name, at in (("a", "1s"), ("b", "30s"))]

    run = simulate(quota, *pods)

    (note,) = json.loads((run.path / "fidelity.json").read_text())
    assert (note["message"], note["count"]) == ("the API rejected objects when they were applied", 1)
    assert "document 3 (Pod b)" in note["example"]
    assert "exceeded quota: few" in note["example"]
    assert run.pods["pod"].tolist() == ["a"]


def test_a_run_fails_if_a_job_never_fits(simulate: Simulate) -> None:
    large = job("large", "sleep 5")
    large["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"

    with pytest.raises(RunFailed, match=r"Job default/large"):
        simulate(large)


def test_without_controllers_a_deployment_has_no_pods(simulate: Simulate) -> None:
    run = simulate(deployment("web:1", 3), controllers="none", until="1h")

    assert run.pods.empty
    assert [line["event"] for line in journal(run)] == ["apply"]


@pytest.mark.parametrize("example", ["backfilling", "preemption"])
def test_controllers_do_not_change_a_run_without_objects(example: str, tmp_path: Path) -> None:
    folder = Path(__file__).resolve().parents[3] / "examples" / example
    values = {**read_scenario_file(folder / "scenario.yaml"), "controllers": "ours"}

    execute(make_scenario(values, example), tmp_path / "out")

    for name in ("jobs.csv", "pods.csv", "machine_states.csv", "journal.jsonl"):
        assert (tmp_path / "out" / name).read_bytes() == (folder / "expected" / name).read_bytes(), name


def test_a_trace_alone_needs_no_api_and_no_controllers(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.json"
    jobs = [{"id": "1", "subtime": 0, "res": 1, "profile": "p"}]
    trace.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 1}}}))

    inputs = read_inputs(make_scenario({"workload": [str(trace)], "platform": "4x1"}, "test"))

    assert (inputs.needs_api, inputs.has_builtin_controllers) == (False, False)


@pytest.mark.parametrize(
    ("manifest", "keys", "place", "problem"),
    [
        (deployment("web:1", 1), {}, "document 1 (Deployment web)", "never ends, so the run would not end"),
        (cron_job(), {}, "document 1 (CronJob tick)", "add --until"),
        (made("v1", "Pod", "p", pod_spec(restart="Always")), {}, "document 1 (Pod p)", "never ends"),
        (job("j", "true", suspend=True), {}, "document 1 (Job j)", "never ends"),
        (
            made("x.org/v1", "Widget", "w"),
            {},
            "document 1 (Widget w)",
            'no matches for kind "Widget" in version "x.org/v1"',
        ),
        (job("j", "true", "-5s"), {}, "document 1 (Job j).batkube.io/submit", "is negative"),
        (job("j", "true", paralellism=3), {}, "document 1 (Job j)", "paralellism"),
        (job("j", "true", completions=-1), {}, "document 1 (Job j)", "must be greater than or equal to 0"),
        (made("v1", "Node", "n"), {}, "document 1 (Node n)", "--platform"),
        (job("j", "true"), {"controllers": "mine"}, "controllers", "'mine' is not a choice of controllers"),
        (job("j", "true"), {"until": "-3"}, "until", "is negative"),
    ],
)
def test_invalid_and_endless_objects_are_rejected_before_anything_is_written(
    simulate: Simulate, tmp_path: Path, manifest: Fields, keys: Fields, place: str, problem: str
) -> None:
    with pytest.raises(InputError) as refusal:
        simulate(manifest, **keys)

    assert place in str(refusal.value)
    assert problem in str(refusal.value)
    assert not (tmp_path / "out").exists()


def test_rules_that_match_no_container_of_the_workload_are_rejected(tmp_path: Path) -> None:
    workload, rules = tmp_path / "w.yaml", tmp_path / "rules.yaml"
    workload.write_text(yaml.safe_dump(job("short", "", backoffLimit=1)))
    rules.write_text("- {image: other, duration: 5}")
    with pytest.raises(
        InputError, match=r"(?s)rules.yaml.*no rule matches any container.*the workload's images are: i"
    ):
        run(workload=workload, platform="1x1", rules=rules, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


PLACEHOLDERS = """
import json, os, time, urllib.request

API = os.environ["BATKUBE_PROXY"] + "/api/v1/namespaces/default/pods"

def post(path, body):
    request = urllib.request.Request(path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request).read()

time.sleep(1)
for image in ("mine", "other"):
    metadata = {"name": image}
    spec = {"restartPolicy": "Never", "nodeName": "node-0", "containers": [{"name": "main", "image": image}]}
    post(API, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
while True:
    for pod in json.load(urllib.request.urlopen(API))["items"]:
        if "nodeName" not in pod["spec"]:
            name = pod["metadata"]["name"]
            target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
            post(f"{API}/{name}/binding", {"metadata": {"name": name}, "target": target})
    time.sleep(1)
"""


def test_rules_apply_to_pods_that_a_program_creates(tmp_path: Path) -> None:
    workload, rules, program = (tmp_path / name for name in ("w.json", "rules.yaml", "program.py"))
    jobs = [{"id": "0", "subtime": 0, "res": 1, "profile": "work"}]
    workload.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": {"work": {"type": "delay", "delay": 99}}}))
    rules.write_text("- {image: mine, duration: 5}\n- {image: nobodys, duration: 5}")
    program.write_text(PLACEHOLDERS)

    result = run(
        workload=workload,
        platform="1x8",
        resources="requests",
        rules=rules,
        scheduler=f"python:{program}",
        out=tmp_path / "out",
    )

    pods = result.pods.set_index("pod")
    lasted = pods["finished"] - pods["started"]
    assert (lasted["mine"], lasted["other"]) == (5, 10)
    notes = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    (idle,) = [note for note in notes if note["subject"] == "rules"]
    assert (idle["count"], idle["example"].endswith("[1]")) == (1, True)
    (guess,) = [note for note in notes if note["subject"] == "containers"]
    assert "image other" in guess["message"]
    assert guess["example"] == "pod default/other, container main"


def test_a_rule_sets_the_run_time_of_the_pods_of_a_job(tmp_path: Path) -> None:
    workload, rules = tmp_path / "w.yaml", tmp_path / "rules.yaml"
    workload.write_text(yaml.safe_dump(job("short", "sleep 100", completions=2, parallelism=2, backoffLimit=1)))
    rules.write_text("- {image: i, labels: {job-name: short}, duration: 5}\n- {image: none, duration: 1}")
    result = run(workload=workload, platform="2x1", rules=rules, out=tmp_path / "out")
    assert sorted(result.pods["finished"] - result.pods["started"]) == [5, 5]
    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert note["subject"] == "rules"


def lost_work(run: Run) -> list[tuple[float, ...]]:
    """Return the columns tries, attempts, evictions and work_lost of each Job."""
    columns = ["tries", "attempts", "evictions", "work_lost"]
    return [tuple(map(float, row)) for row in run.jobs[columns].itertuples(index=False)]


@pytest.mark.parametrize(("restart", "tries"), [("Never", 2), ("OnFailure", 1)])
def test_a_short_node_failure_loses_the_work_of_the_pod_so_far(simulate: Simulate, restart: str, tries: int) -> None:
    pods = {"template": {"spec": pod_spec("sleep 1000", restart=restart)}}
    events = [{"at": 400, "fail": "node-0"}, {"at": 430, "return": "node-0"}]

    run = simulate(made("batch/v1", "Job", "work", pods), events=events)

    assert run.jobs["success"].tolist() == [1]
    assert lost_work(run) == [(tries, tries, 0, pytest.approx(400 / 4, abs=0.01))], "a quarter of a core, for 400 s"


def test_an_eviction_from_a_failed_node_loses_the_work_until_the_failure(
    simulate: Simulate,
) -> None:
    events = [{"at": 400, "fail": "node-0"}, {"at": 3000, "return": "node-0"}]

    run = simulate(job("work", "sleep 1000"), events=events)

    (row,) = run.jobs.to_dict("records")
    assert row["starting_time"] < 1
    assert row["finish_time"] > 1750, "evicted five minutes after the failure was noticed, then all over again"
    assert lost_work(run) == [(2, 2, 1, pytest.approx(400 / 4, abs=0.01))]
    assert run.schedule["work_lost"] == row["work_lost"]


def test_an_eviction_of_one_pod_loses_only_the_work_of_that_pod(simulate: Simulate) -> None:
    pods = {"completions": 3, "parallelism": 3, "template": {"spec": pod_spec("sleep 1000", cpu="3")}}

    run = simulate(made("batch/v1", "Job", "work", pods), events=[{"at": 400, "drain": "node-0"}])

    assert lost_work(run) == [(4, 4, 1, pytest.approx(400 * 3, abs=100))]


def test_a_job_that_fails_on_its_own_has_no_lost_work(simulate: Simulate) -> None:
    run = simulate(job("flaky", "sleep 20; exit 1", backoffLimit=2))

    assert run.jobs["final_state"].tolist() == ["COMPLETED_FAILED"]
    assert lost_work(run) == [(3, 3, 0, 0)]


def test_a_mutating_admission_policy_needs_its_api_version_enabled(simulate: Simulate) -> None:
    beta = "admissionregistration.k8s.io/v1beta1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    text = 'Object{metadata: Object.metadata{annotations: {"batkube.io/duration": "77s"}}}'
    spec: Fields = {
        "matchConstraints": {"resourceRules": [rule]},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": text}}],
    }
    policy = made(beta, "MutatingAdmissionPolicy", "longer", spec)
    binding = made(beta, "MutatingAdmissionPolicyBinding", "longer", {"policyName": "longer"})

    with pytest.raises(InputError, match="no matches for kind") as refusal:
        simulate(policy, binding, job("j", "sleep 5"))
    changed = simulate(policy, binding, job("j", "sleep 5"), out="changed", api=[beta])

    assert f"add --api {beta}" in str(refusal.value)
    assert changed.pods["finished"].iloc[0] - changed.pods["started"].iloc[0] == pytest.approx(77)
