"""Device claims under scaling, retries, preemption, failures and deletions: ours compared with the real controllers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import batkube

MANAGER = "kube-controller-manager@1.34.4"
#: Random parts of names: the suffix, and the hash of a template.
CHANCE = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b|-[0-9a-f]{10}\b|-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
#: Classes by driver, and slices by name, with their node and the models of their devices.
CLASSES = {"gpu": 'cel.bind(d, device.driver, d == "gpu.example.com")', "net": 'device.driver == "net.example.com"'}
SLICES: dict[str, tuple[dict[str, Any], str]] = {
    "gpu-0": ({"nodeName": "node-0"}, "xx"),
    "gpu-1": ({"nodeName": "node-1"}, "yz"),
    "net": ({"allNodes": True}, "l"),
}
#: The requests of templates, by name.
REQUESTS: dict[str, dict[str, Any]] = {
    "one": {"exactly": {"deviceClassName": "gpu"}},
    "all": {"exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
    "net": {"exactly": {"deviceClassName": "net"}},
    "any": {
        "firstAvailable": [
            {"name": "many", "deviceClassName": "gpu", "count": 3},
            {"name": "few", "deviceClassName": "gpu", "count": 2},
        ]
    },
}


def made(kind: str, name: str, at: int, spec: Any, version: str = "v1") -> dict[str, Any]:  # noqa: ANN401
    metadata = {"name": name, "annotations": {"batkube.io/submit": str(at)}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def pods(command: str, cpu: int = 1, restart: str = "Never", **claims: str) -> dict[str, Any]:
    """Return a pod spec; each claim is the name of a template, or a slash and the name of a claim."""
    entries = [
        {"name": name, "resourceClaimName" if "/" in claim else "resourceClaimTemplateName": claim.strip("/")}
        for name, claim in claims.items()
    ]
    resources = {"requests": {"cpu": cpu}, "claims": [{"name": name} for name in claims]}
    container = {"name": "c", "image": "i", "command": ["sh", "-c", command], "resources": resources}
    return {"restartPolicy": restart, "resourceClaims": entries, "containers": [container]}


def on(node: int, template: dict[str, Any]) -> dict[str, Any]:
    return {**template, "nodeSelector": {"kubernetes.io/hostname": f"node-{node}"}}


def job(name: str, at: int, template: dict[str, Any], **spec: object) -> dict[str, Any]:
    return made("Job", name, at, {**spec, "template": {"spec": template}}, "batch/v1")


def of_set(name: str, template: dict[str, Any], **spec: object) -> dict[str, Any]:
    labels = {"app": name}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": template}, **spec}


def devices() -> list[dict[str, Any]]:
    """Return DeviceClasses, ResourceSlices and templates of claims."""
    version = "resource.k8s.io/v1"
    found = []
    for name, text in CLASSES.items():
        found.append(made("DeviceClass", name, 0, {"selectors": [{"cel": {"expression": text}}]}, version))
    for name, (place, models) in SLICES.items():
        listed = [{"name": f"d{i}", "attributes": {"model": {"string": model}}} for i, model in enumerate(models)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        driver = f"{name.partition('-')[0]}.example.com"
        spec = {"driver": driver, "pool": pool, "devices": listed, **place}
        found.append(made("ResourceSlice", name, 0, spec, version))
    for name, request in REQUESTS.items():
        spec = {"spec": {"devices": {"requests": [{"name": "r", **request}]}}}
        found.append(made("ResourceClaimTemplate", name, 0, spec, version))
    return found


def workload() -> list[dict[str, Any]]:
    important = made("PriorityClass", "high", 0, None, "scheduling.k8s.io/v1")
    del important["spec"]
    claim = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    claims = [
        made("ResourceClaim", name, at, claim, "resource.k8s.io/v1") for name, at in (("named", 0), ("late", 1730))
    ]
    forever = pods("sleep 1d", restart="Always", c="one")
    return [
        {**important, "value": 1000},
        *devices(),
        *claims,
        made("Deployment", "web", 10, of_set("web", forever, replicas=3), "apps/v1"),
        job("retried", 300, pods("sleep 7; exit 1", c="one"), backoffLimit=2),
        job("alternatives", 500, pods("sleep 40", c="any"), completions=3, parallelism=3),
        job("all", 700, pods("sleep 30", c="all"), completions=3, parallelism=3),
        job("licensed", 900, pods("sleep 30", c="net"), completions=3, parallelism=2),
        made("Pod", "both", 1000, pods("sleep 20", a="one", b="/named", c="net")),
        job("weak", 1100, pods("sleep 100", cpu=8, c="one"), completions=4, parallelism=4),
        job("strong", 1120, {**pods("sleep 50", cpu=8), "priorityClassName": "high"}, completions=3, parallelism=3),
        made("DaemonSet", "agent", 1500, of_set("agent", forever), "apps/v1"),
        job("slow", 1600, pods("sleep 1d", c="one"), activeDeadlineSeconds=50, completions=2, parallelism=2),
        made("Pod", "early", 1700, pods("sleep 10", c="/late")),
        made("Pod", "bound", 1800, {**pods("sleep 1d", c="one"), "nodeName": "node-0"}),
        made("StatefulSet", "db", 1900, of_set("db", on(1, forever), replicas=2, serviceName="db"), "apps/v1"),
        made("Deployment", "site", 1900, of_set("site", on(0, forever), replicas=2), "apps/v1"),
    ]


#: Events: fewer replicas, the deletion of a claim in use, a failed node, a drained node.
EVENTS = [
    {"at": 100, "scale": "Deployment/web", "to": 1},
    {"at": 200, "delete": "Deployment/web"},
    {"at": 1010, "delete": "ResourceClaim/named"},
    {"at": 1550, "delete": "DaemonSet/agent"},
    {"at": 1820, "delete": "Pod/bound"},
    {"at": 2000, "fail": "node-1", "for": 600},
    {"at": 3000, "drain": "node-0", "for": 100},
]


def ran(folder: Path, controllers: str) -> batkube.Run:
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(workload()))
    (folder / "events.yaml").write_text(yaml.safe_dump(EVENTS))
    return batkube.run(
        workload=folder / "objects.yaml",
        events=str(folder / "events.yaml"),
        platform="3x16,128Gi",
        scheduler="kube-scheduler@1.34.4",
        controllers=controllers,
        until="3600",
        out=folder / controllers.partition("@")[0],
    )


def spans(frame: Any, name: str, begin: str, end: str) -> dict[str, list[tuple[float, float]]]:  # noqa: ANN401
    """Return begin and end of the objects of each name; -1 for an end that never came."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in frame.fillna(-1).itertuples():
        key = CHANCE.sub("-*", getattr(row, name))
        found.setdefault(key, []).append((getattr(row, begin), getattr(row, end)))
    return {key: sorted(found[key]) for key in sorted(found)}


def test_devices_are_allocated_and_released_as_under_the_real_controllers(
    built_program: Callable[[str], str], tmp_path: Path
) -> None:
    ours, real = ran(tmp_path, "ours"), ran(tmp_path, built_program(MANAGER))
    for frame, columns in (("pods", ("pod", "started", "finished")), ("devices", ("claim", "allocated", "freed"))):
        of_ours, of_real = (spans(getattr(run, frame), *columns) for run in (ours, real))
        assert of_ours.keys() == of_real.keys()
        for name, times in of_ours.items():
            assert len(times) == len(of_real[name]), name
            for one, other in zip(times, of_real[name], strict=True):
                assert one == pytest.approx(other, abs=1), name
    kept = ours.devices[ours.devices["freed"].isna()]["pods"]
    assert sorted(CHANCE.sub("-*", pod) for pod in kept) == ["db-0", "db-1", "site-*-*", "site-*-*"]
    assert len(ours.devices) > 40
