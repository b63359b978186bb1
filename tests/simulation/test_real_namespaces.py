"""Deleted namespaces terminate at the same time as under the real controller, with the same conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from batkube.scenarios.keys import make_scenario
from batkube.simulation.run import execute

MANAGER = "kube-controller-manager@1.34.4"
END_S = 600
#: How long before the end of the run namespaces are deleted: around 5 s, 10 s, 26 s and 42 s, when the controller
#: checks them.
LEADS_S = (4, 6, 9, 11, 25, 27, 41, 43, 100)
#: The content of namespaces, by name: how long the pod takes to stop, and the finalizer of an object.
CONTENTS: dict[str, tuple[int | None, str]] = {
    "empty": (None, ""),
    "quick": (0, ""),
    "slow": (12, ""),
    "slowest": (30, ""),
    "held": (None, "example.com/held"),
}


def objects() -> Iterator[dict[str, Any]]:
    for name, (stop_s, finalizer) in CONTENTS.items():
        for lead in LEADS_S:
            metadata = {"name": "one", "namespace": f"{name}-{lead}"}
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{name}-{lead}"}}
            if stop_s is not None:
                stop = {"batkube.io/submit": "10", "batkube.io/stop-time": str(stop_s)}
                spec = {"containers": [{"name": "c", "image": "i"}]}
                yield {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "annotations": stop}, "spec": spec}
            if finalizer:
                yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**metadata, "finalizers": [finalizer]}}


def left(folder: Path, controllers: str) -> dict[str, Any]:
    """Return the remaining namespaces with their conditions."""
    events = [
        {"at": END_S - lead, "delete": f"Namespace/{name}-{lead}"}
        for lead in sorted(LEADS_S, reverse=True)
        for name in CONTENTS
    ]
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(objects()))
    (folder / "events.yaml").write_text(yaml.safe_dump(events))
    keys = {
        "workload": str(folder / "objects.yaml"),
        "events": str(folder / "events.yaml"),
        "platform": "8x16,128Gi",
        "scheduler": "kube-scheduler@1.34.4",
        "until": str(END_S),
        "controllers": controllers,
    }
    record = execute(make_scenario(keys, "test"), folder / controllers.partition("@")[0])
    store = record.simulation.world.store
    return {
        name: {
            condition["type"]: (condition["status"], condition["reason"], condition["message"])
            for condition in namespace["status"].get("conditions", ())
        }
        for name, namespace in store.all("namespaces").items()
        if name.partition("-")[0] in CONTENTS
    }


def test_namespaces_terminate_when_they_do_under_the_real_controller(
    built_program: Callable[[str], str], tmp_path: Path
) -> None:
    ours, real = left(tmp_path, "ours"), left(tmp_path, built_program(MANAGER))

    assert ours == real
    last = {name: max((lead for lead in LEADS_S if f"{name}-{lead}" in ours), default=0) for name in CONTENTS}
    assert last == {"empty": 4, "quick": 9, "slow": 25, "slowest": 41, "held": 100}
