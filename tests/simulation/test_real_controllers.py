"""The real kube-controller-manager and our controllers produce the same objects, and pods at the same instants."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import opt_in

from batkube.kernel.errors import RunFailed
from batkube.scenarios.keys import make_scenario
from batkube.simulation.run import execute
from batkube.simulation.run_record import RunRecord

Fields = dict[str, Any]

MANAGER = "kube-controller-manager@1.34.4"
FILES = ("jobs.csv", "pods.csv", "schedule.csv", "machine_states.csv", "journal.jsonl", "fidelity.json")
KINDS = (
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "daemonsets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "pods",
    "poddisruptionbudgets.policy",
)
#: Of Services, volumes and ReplicationControllers.
OTHER_KINDS = (
    "replicationcontrollers",
    "pods",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "persistentvolumeclaims",
    "persistentvolumes",
)
#: Fields that differ between runs, or that record managers and times of writes.
CHANCE = {"uid", "resourceVersion", "managedFields", "nodeName", "podIP", "podIPs", "hostIP", "hostIPs", "containerID"}
#: Addresses are assigned in the order in which pods start, which may differ, and lists are in that order.
CHANCE |= {"ip", "endpoints.kubernetes.io/last-change-trigger-time"}
ADDRESS = re.compile(r"^10\.128\.\d+\.\d+$")
#: Generations of a changed Deployment, which Batkube's controllers write in other steps.
STEPS = {"generation", "observedGeneration"}
#: The hash of a template differs, because the real one hashes Go's text of it.
HASH = re.compile(r"\b(web|wave|slow|full|blind|bare)-[a-z0-9]{6,10}\b")
SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
IDENTITY = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


def container(command: str, image: str, **more: object) -> Fields:
    words = {"command": ["sh", "-c", command]} if command else {}
    return {"name": "c", "image": image, "resources": {"requests": {"cpu": "100m"}}, **words, **more}


def made(version: str, kind: str, name: str, submit: str, spec: Fields) -> Fields:
    metadata = {"name": name, "annotations": {"batkube.io/submit": submit}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def deployment(image: str, replicas: int, submit: str) -> Fields:
    probe = {"initialDelaySeconds": 20, "tcpSocket": {"port": 80}}
    pods = {"containers": [container("", image, readinessProbe=probe)]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pods}
    labels = {"matchLabels": {"app": "web"}}
    return made(
        "apps/v1", "Deployment", "web", submit, {"replicas": replicas, "selector": labels, "template": template}
    )


def stateful_set(image: str, replicas: int, submit: str) -> Fields:
    probe = {"initialDelaySeconds": 10, "tcpSocket": {"port": 80}}
    template = {
        "metadata": {"labels": {"app": "db"}},
        "spec": {"containers": [container("", image, readinessProbe=probe)]},
    }
    labels = {"matchLabels": {"app": "db"}}
    spec = {"replicas": replicas, "serviceName": "db", "selector": labels, "template": template}
    return made("apps/v1", "StatefulSet", "db", submit, spec)


def daemon_set(name: str, image: str, submit: str, **limits: object) -> Fields:
    probe = {"initialDelaySeconds": 15, "tcpSocket": {"port": 80}}
    pods = {"containers": [container("", image, **({"readinessProbe": probe} if limits else {}))]}
    template = {"metadata": {"labels": {"app": name}}, "spec": pods}
    strategy = {"type": "RollingUpdate", **({"rollingUpdate": limits} if limits else {})}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template, "updateStrategy": strategy}
    return made("apps/v1", "DaemonSet", name, submit, spec)


def replication_controller(replicas: int, submit: str) -> Fields:
    template = {"metadata": {"labels": {"app": "old"}}, "spec": {"containers": [container("", "old:1")]}}
    spec = {"replicas": replicas, "selector": {"app": "old"}, "template": template}
    return made("v1", "ReplicationController", "old", submit, spec)


def service(name: str, **spec: object) -> Fields:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "more", "port": 81}]
    return made("v1", "Service", name, "6", {"ports": ports, **spec})


def endpoints(name: str, address: str, submit: str) -> Fields:
    subsets = [{"addresses": [{"ip": address}], "ports": [{"name": "http", "port": 8080}]}]
    one = made("v1", "Endpoints", name, submit, {})
    del one["spec"]
    return {**one, "subsets": subsets}


def volume(name: str, size: str) -> Fields:
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    return made("v1", "PersistentVolume", name, "3", spec)


def claim(name: str, size: str, **spec: object) -> Fields:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return made("v1", "PersistentVolumeClaim", name, "30", wanted)


def job(name: str, command: str, submit: str, **spec: object) -> Fields:
    pods = {"restartPolicy": "Never", "containers": [container(command, name)]}
    return made("batch/v1", "Job", name, submit, {"template": {"spec": pods}, **spec})


def cron_job(name: str, schedule: str, command: str) -> Fields:
    pods = {"restartPolicy": "Never", "containers": [container(command, name)]}
    template = {"spec": {"template": {"spec": pods}}}
    return made("batch/v1", "CronJob", name, "20", {"schedule": schedule, "jobTemplate": template})


OBJECTS = [
    deployment("web:1", 5, "10"),
    deployment("web:2", 5, "40m"),
    deployment("web:2", 9, "50m"),
    deployment("web:3", 6, "60m"),
    stateful_set("db:1", 3, "15"),
    stateful_set("db:2", 4, "30m"),
    daemon_set("agent", "agent:1", "25"),
    daemon_set("agent", "agent:2", "35m"),
    daemon_set("surge", "surge:1", "35", maxSurge=3, maxUnavailable=0),
    daemon_set("surge", "surge:2", "45m", maxSurge=3, maxUnavailable=0),
    cron_job("tick", "*/5 * * * *", "sleep 30"),
    job("fails", "sleep 10; exit 1", "30", backoffLimit=4),
    job("wide", "sleep 60", "40", completions=10, parallelism=3),
    job("indexed", "sleep 45", "1h", completions=4, parallelism=2, completionMode="Indexed"),
    job("late", "sleep 1h", "70m", activeDeadlineSeconds=300),
    job("brief", "true", "80m", ttlSecondsAfterFinished=100),
    made(
        "policy/v1", "PodDisruptionBudget", "web", "5", {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}}
    ),
]


OTHER_OBJECTS = [
    replication_controller(3, "50"),
    replication_controller(5, "4m"),
    replication_controller(2, "8m"),
    service("web", selector={"app": "old"}),
    service("headless", selector={"app": "old"}, clusterIP="None"),
    service("nobody", selector={"app": "nobody"}),
    service("by-hand"),
    endpoints("by-hand", "10.1.2.3", "40"),
    endpoints("by-hand", "10.1.2.4", "5m"),
    volume("small", "1Gi"),
    volume("large", "5Gi"),
    claim("data", "2Gi"),
    claim("too-much", "20Gi"),
    claim("named", "1Gi", volumeName="small"),
]


def device_claim(kind: str, name: str) -> Fields:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    return made("resource.k8s.io/v1", kind, name, "1", spec if kind == "ResourceClaim" else {"spec": spec})


def with_device(command: str, **claim: str) -> Fields:
    one = container(command, "gpu")
    one["resources"] = {**one["resources"], "claims": [{"name": "d"}]}
    return {"restartPolicy": "Never", "resourceClaims": [{"name": "d", **claim}], "containers": [one]}


_SCRATCH = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
#: Two devices, requested by a Job of four pods, by a pod that stays, and by two pods that share one; and an ephemeral
#: volume of a pod.
DEVICE_OBJECTS = [
    made("resource.k8s.io/v1", "DeviceClass", "gpu", "0", {"selectors": [{"cel": {"expression": "true"}}]}),
    made(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "node-3",
        "0",
        {
            "driver": "gpu.example.com",
            "nodeName": "node-3",
            "pool": {"name": "node-3", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}, {"name": "d1"}],
        },
    ),
    device_claim("ResourceClaimTemplate", "own"),
    device_claim("ResourceClaim", "shared"),
    device_claim("ResourceClaim", "unused"),
    made(
        "batch/v1",
        "Job",
        "own",
        "10",
        {
            "completions": 4,
            "parallelism": 4,
            "template": {"spec": with_device("sleep 60", resourceClaimTemplateName="own")},
        },
    ),
    made("v1", "Pod", "one", "150", with_device("sleep 100", resourceClaimName="shared")),
    made("v1", "Pod", "other", "160", with_device("sleep 1h", resourceClaimName="shared")),
    made("v1", "Pod", "stays", "170", with_device("sleep 1h", resourceClaimTemplateName="own")),
    volume("disk", "1Gi"),
    made(
        "v1",
        "Pod",
        "scratch",
        "20",
        {
            "containers": [container("sleep 1h", "scratch")],
            "volumes": [{"name": "disk", "ephemeral": {"volumeClaimTemplate": {"spec": _SCRATCH}}}],
        },
    ),
]


def busy(name: str, replicas: int, **requests: str) -> Fields:
    """Return a Deployment whose pods have the usage that RULES define."""
    pods = {"containers": [{"name": "c", "image": name, "resources": {"requests": requests}}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": pods}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return made("apps/v1", "Deployment", name, "10", spec)


def autoscaler(name: str, metric: Fields, most: int = 10, **spec: object) -> Fields:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    fields = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": most, "metrics": [metric], **spec}
    return made("autoscaling/v2", "HorizontalPodAutoscaler", name, "20", fields)


def resource(name: str, **target: object) -> Fields:
    kind = "Utilization" if "averageUtilization" in target else "AverageValue"
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind, **target}}}


#: What pods use, by their age.
RULES = """
- {image: wave, cpu: [[0s, 900m], [10m, 900m], [10m, 200m], [40m, 200m]]}
- {image: slow, cpu: [[0s, 100m], [30m, 1], [1h, 100m]]}
- {image: full, memory: [[0s, 1Gi], [20m, 3Gi]]}
"""
SCALED_OBJECTS = [
    busy("wave", 2, cpu="1"),
    autoscaler("wave", resource("cpu", averageUtilization=50)),
    busy("slow", 3, cpu="500m"),
    autoscaler(
        "slow",
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu",
                "container": "c",
                "target": {"type": "Utilization", "averageUtilization": 60},
            },
        },
        behavior={
            "scaleUp": {
                "stabilizationWindowSeconds": 60,
                "policies": [{"type": "Pods", "value": 2, "periodSeconds": 120}],
            },
            "scaleDown": {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 300}]},
        },
    ),
    busy("full", 2, memory="2Gi"),
    autoscaler("full", resource("memory", averageValue="1500Mi"), most=5),
    autoscaler("nobody", resource("cpu", averageUtilization=50)),
    busy("blind", 2, cpu="1"),
    autoscaler(
        "blind",
        {"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
    ),
    busy("bare", 2),
    autoscaler("bare", resource("cpu", averageUtilization=50)),
]


def ran(out: Path, until: str, controllers: str, objects: Sequence[Fields] = OBJECTS, rules: str = "") -> RunRecord:
    """Run the objects under kube-scheduler, with the given controllers."""
    out.parent.mkdir(exist_ok=True)
    workload = out.parent / "workload.yaml"
    workload.write_text(yaml.safe_dump_all(objects))
    keys = {"workload": str(workload), "platform": "8x4,16Gi", "scheduler": "kube-scheduler@1.34.4"}
    if rules:
        (out.parent / "rules.yaml").write_text(rules)
        keys["rules"] = str(out.parent / "rules.yaml")
    return execute(make_scenario({**keys, "until": until, "controllers": controllers}, "test"), out)


def plain(value: Any, key: str = "") -> Any:  # noqa: ANN401 - any JSON
    """Return the parts of an object that must be equal in both clusters."""
    if isinstance(value, dict):
        return {name: plain(held, name) for name, held in value.items() if name not in CHANCE | STEPS}
    if isinstance(value, list):
        held = [plain(held) for held in value]
        return sorted(held, key=json.dumps) if key in ("addresses", "endpoints", "ports") else held or None
    if isinstance(value, str):
        if key in ("pod-template-hash", "controller-revision-hash", "currentRevision", "updateRevision"):
            return "a hash"
        if key == "resourceClaimName":
            return value.partition("-")[0]
        value = ADDRESS.sub("an address", value)
        return HASH.sub(r"\1-#", SUFFIX.sub("-*", TIME.sub("a time", IDENTITY.sub("an identity", value))))
    return value


def left(record: RunRecord, kinds: Sequence[str] = KINDS) -> dict[str, list[str]]:
    """Return the objects at the end of a run by kind, as sorted texts."""
    store = record.simulation.world.store
    return {kind: sorted(json.dumps(plain(one), sort_keys=True) for one in store.all(kind).values()) for kind in kinds}


def rows(out: Path) -> list[dict[str, str]]:
    """Return the rows of pods.csv."""
    with (out / "pods.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def created(out: Path) -> dict[str, list[float]]:
    """Return when the pods of each owner were created, in seconds."""
    instants: dict[str, list[float]] = {}
    for row in rows(out):
        instants.setdefault(HASH.sub(r"\1-#", row["owner"]), []).append(float(row["created"]))
    return {owner: sorted(times) for owner, times in sorted(instants.items())}


def content(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in FILES}


def assert_alike(ours: RunRecord, real: RunRecord, folder: Path) -> None:
    """Assert that two runs ended with the same objects, and created pods at the same instants within a second."""
    assert left(ours) == left(real)
    of_ours, of_real = created(folder / "ours"), created(folder / "real")
    assert of_ours.keys() == of_real.keys()
    for owner, times in of_ours.items():
        assert len(times) == len(of_real[owner]), owner
        assert times == pytest.approx(of_real[owner], abs=1), owner


def test_workloads_have_the_same_final_state_as_under_the_real_controllers(
    built_program: Callable[[str], str], tmp_path: Path
) -> None:
    ours, real = ran(tmp_path / "ours", "2h", "ours"), ran(tmp_path / "real", "2h", built_program(MANAGER))
    assert_alike(ours, real, tmp_path)
    assert len(created(tmp_path / "real")) == 32, "five Jobs and 23 of the CronJob, and four sets"
    log = tmp_path / "real" / "scheduler" / "kube-controller-manager" / "log.txt"
    assert '"Starting" version="v1.34.4"' in log.read_text()


def tidied(texts: Sequence[str]) -> list[str]:
    """Return objects without known differences.

    The real controllers record the last change of endpoints (dropped by `plain`, which leaves empty annotations),
    create mirrored slices again without `generateName`, and write empty lists as null, over protobuf.
    """
    known = re.compile(r'"annotations": \{\}, |"generateName": "[^"]*", ')
    return sorted(known.sub("", text).replace(": null", ": []") for text in texts)


def test_services_and_volumes_have_the_same_final_state_as_under_the_real_controllers(
    built_program: Callable[[str], str], tmp_path: Path
) -> None:
    ours = ran(tmp_path / "ours", "12m", "ours", OTHER_OBJECTS)
    real = ran(tmp_path / "real", "12m", built_program(MANAGER), OTHER_OBJECTS)
    for kind in OTHER_KINDS:
        assert tidied(left(ours, [kind])[kind]) == tidied(left(real, [kind])[kind])
    assert len(left(ours, ["pods"])["pods"]) == 2


def test_claims_have_the_same_final_state_as_under_the_real_controllers(
    built_program: Callable[[str], str], tmp_path: Path
) -> None:
    kinds = ["pods", "resourceclaims.resource.k8s.io", "persistentvolumeclaims", "persistentvolumes"]
    ours = ran(tmp_path / "ours", "12m", "ours", DEVICE_OBJECTS)
    real = ran(tmp_path / "real", "12m", built_program(MANAGER), DEVICE_OBJECTS)
    for kind in kinds:
        assert tidied(left(ours, [kind])[kind]) == tidied(left(real, [kind])[kind]), kind
    assert [len(texts) for texts in left(ours, kinds).values()] == [8, 3, 1, 1]
    starts = [
        sorted(float(row["started"]) for row in rows(tmp_path / name) if row["started"]) for name in ("ours", "real")
    ]
    assert starts[0] == pytest.approx(starts[1], abs=1)


def test_autoscalers_act_as_the_real_one(built_program: Callable[[str], str], tmp_path: Path) -> None:
    ours = ran(tmp_path / "ours", "90m", "ours", SCALED_OBJECTS, RULES)
    real = ran(tmp_path / "real", "90m", built_program(MANAGER), SCALED_OBJECTS, RULES)
    kinds = ["horizontalpodautoscalers.autoscaling", "deployments.apps"]
    assert left(ours, kinds) == left(real, kinds)
    of_ours, of_real = created(tmp_path / "ours"), created(tmp_path / "real")
    assert [(len(times), pytest.approx(times, abs=1)) for times in of_ours.values()] == [
        (len(times), times) for times in of_real.values()
    ]
    assert sum(map(len, of_ours.values())) > 25


def whole(record: RunRecord) -> list[object]:
    """Return every object at the end of a run with its version, which shows the order of all writes."""
    store = record.simulation.world.store
    return [store.entries(kind) for kind in {*KINDS, *OTHER_KINDS}]


def test_two_runs_with_the_real_controllers_are_identical(built_program: Callable[[str], str], tmp_path: Path) -> None:
    objects = [*OBJECTS, *OTHER_OBJECTS]
    one = ran(tmp_path / "one", "2h", built_program(MANAGER), objects)
    other = ran(tmp_path / "the other", "2h", MANAGER, objects)
    assert content(tmp_path / "one") == content(tmp_path / "the other")
    assert whole(one) == whole(other)


@opt_in.slow("runs three virtual days four times, once and again with each controllers")
def test_three_days_are_equal_under_both_and_repeatable(built_program: Callable[[str], str], tmp_path: Path) -> None:
    ours, real = ran(tmp_path / "ours", "3d", "ours"), ran(tmp_path / "real", "3d", built_program(MANAGER))
    assert_alike(ours, real, tmp_path)
    assert sum(map(len, created(tmp_path / "real").values())) > 864
    for name, record, controllers in (("ours", ours, "ours"), ("real", real, MANAGER)):
        again = ran(tmp_path / f"{name} again", "3d", controllers)
        assert content(tmp_path / name) == content(tmp_path / f"{name} again")
        assert whole(record) == whole(again)


def test_real_controllers_that_cannot_start_fail_the_run_with_their_log(
    built_program: Callable[[str], str], tmp_path: Path
) -> None:
    with pytest.raises(RunFailed, match=r"(?s)kube-controller-manager@1.34.4 ended with exit code 1.*unknown flag"):
        ran(tmp_path / "out", "1h", f"{built_program(MANAGER)} --nonsense")
