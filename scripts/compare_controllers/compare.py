"""Compare the objects and events of our controllers with those of a real kube-controller-manager.

    python scripts/compare_controllers/compare.py --manager PATH/kube-controller-manager --kubectl PATH/kubectl

The manifests of this folder and a few changes are applied to two clusters of `batkube serve`, one with our controllers,
one with the real ones attached (`--controllers none`). Then the objects and events of both are compared, without
identities, times and random names. This takes about five minutes of real time. The exit code is 1 if they differ. Build
kube-controller-manager from Kubernetes' source, in the version that Batkube imitates.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KINDS = (
    *("deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions", "jobs", "cronjobs"),
    *("poddisruptionbudgets", "resourcequotas", "persistentvolumeclaims", "resourceclaims", "pods"),
)
CONTROLLERS = (
    "cronjob-controller",
    "job-controller",
    "deployment-controller",
    "replicaset-controller",
    "statefulset-controller",
    "daemonset-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "disruption-controller",
    "ttl-after-finished-controller",
    "serviceaccount-controller",
    "resourcequota-controller",
    "taint-eviction-controller",
    "pod-garbage-collector-controller",
    "ephemeral-volume-controller",
    "persistentvolume-binder-controller",
    "resourceclaim-controller",
)
#: Changes of the objects after some time, as arguments of kubectl.
CHANGES = (
    "set image deployment/web web=nginx:2",
    "scale deployment/web2 --replicas=1",
    "delete job todelete --wait=false",
    'patch job resume -p {"spec":{"suspend":false}}',
    "set image statefulset/db db=postgres:2",
    "scale statefulset/wide --replicas=1",
    "set image daemonset/agent agent=agent:2",
    "delete deployment web3 --cascade=foreground --wait=false",
)
SETTLE_S, WATCH_S = 25, 125
#: Events that the real controllers repeat, every 15 s or because of a stale cache; their counts are ignored.
REPEATED = ("SawCompletedJob", "FailedBinding")
#: Fields that must differ.
IDENTITIES = frozenset(
    (
        *("managedFields", "resourceVersion", "uid", "controller-uid", "batch.kubernetes.io/controller-uid"),
        *("creationTimestamp", "deletionTimestamp", "lastTransitionTime", "lastUpdateTime", "lastProbeTime"),
        *("startTime", "completionTime", "lastScheduleTime", "lastSuccessfulTime", "startedAt", "finishedAt"),
        *("containerID", "nodeName", "podIP", "podIPs", "hostIP", "hostIPs", "ip"),
        "kubectl.kubernetes.io/last-applied-configuration",
    )
)
#: Random names, hashes, and times within texts.
RANDOM_TEXTS = (
    (re.compile(r"\b((?:web\d?|toobig|db|wide|agent)-)[a-z0-9]{6,10}(-[a-z0-9]{5})?\b"), r"\1HASH"),
    (re.compile(r"\b(tick|replace)-\d{8}(-[a-z0-9]{5})?\b"), r"\1-MINUTE"),
    (re.compile(r"\b([a-z]+(?:-\d)?-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"), r"\1RANDOM"),
    (re.compile(r"^[bcdfghjklmnpqrstvwxz2456789]{6,10}$"), "HASH"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[0-9:]+Z"), "TIME"),
    (re.compile(r"\bnode-\d"), "NODE"),
)


def main() -> None:
    """Compare, print the differences, and exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--manager", required=True, type=Path, help="the real kube-controller-manager")
    parser.add_argument("--kubectl", default="kubectl")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours = _outcome(Path(folder) / "ours", options.kubectl, None)
        real = _outcome(Path(folder) / "real", options.kubectl, options.manager)
    differences = list(difflib.unified_diff(real, ours, "real", "ours", lineterm="", n=6))
    print("\n".join(differences) or f"no difference in {len(ours):,} lines")
    sys.exit(1 if differences else 0)


def _outcome(folder: Path, kubectl: str, manager: Path | None) -> list[str]:
    """Run a cluster and return its final objects and events as lines of text."""
    with contextlib.ExitStack() as running:
        controllers = "ours" if manager is None else "none"
        serve = [sys.executable, "-m", "batkube", "serve", "--platform", "4x4,16Gi", "--quiet"]
        running.enter_context(_process(*serve, "--out", str(folder), "--controllers", controllers))
        config = folder / "kubeconfig"
        while not config.exists():
            time.sleep(0.2)
        if manager is not None:
            flags = [f"--{use}kubeconfig={config}" for use in ("", "authentication-", "authorization-")]
            flags += ["--leader-elect=false", "--secure-port=0", f"--controllers={','.join(CONTROLLERS)}"]
            running.enter_context(_process(str(manager), *flags))
            time.sleep(10)

        def run(*arguments: str) -> str:
            command = [kubectl, "--kubeconfig", str(config), *arguments]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        # CronJobs run at full minutes, so both clusters start at one.
        time.sleep(60 - time.time() % 60)
        run("apply", "-f", str(HERE / "manifests.yaml"))
        time.sleep(SETTLE_S)
        for change in CHANGES:
            run(*change.split())
        time.sleep(WATCH_S)
        objects = [one for kind in KINDS for one in json.loads(run("get", kind, "-o", "json"))["items"]]
        return [*_object_lines(objects), *_event_lines(json.loads(run("get", "events", "-o", "json"))["items"])]


@contextlib.contextmanager
def _process(*command: str) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _object_lines(objects: list[dict[str, Any]]) -> list[str]:
    texts = sorted(json.dumps(_normalized(one), sort_keys=True, indent=1) for one in objects)
    return [line for text in texts for line in text.splitlines()]


def _event_lines(events: list[dict[str, Any]]) -> list[str]:
    counts: dict[str, int] = {}
    for event in events:
        about = event["involvedObject"]
        key = f"{about['kind']} {about['name']} {event['type']} {event['reason']}: {event['message']}"
        count = 0 if event["reason"] in REPEATED else event.get("count") or 1
        text = _normalized(key)
        counts[text] = counts.get(text, 0) + count
    return [f"{count} x {text}" for text, count in sorted(counts.items())]


def _normalized(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {name: _normalized(part) for name, part in value.items() if name not in IDENTITIES}
    if isinstance(value, list):
        return [_normalized(part) for part in value]
    if isinstance(value, str):
        for pattern, replacement in RANDOM_TEXTS:
            value = pattern.sub(replacement, value)
    return value


if __name__ == "__main__":
    main()
