"""A simulated cluster with all controllers, and a simple replacement of the API server."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from batkube.cluster.client import ApiError
from batkube.cluster.object_meta import key_of
from batkube.cluster.pods.accessors import is_finished
from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.store import Key, KubeObject, Store
from batkube.cluster.world import World
from batkube.components.access import Access
from batkube.components.cluster import KubeletOptions, start_cluster, start_scheduler
from batkube.components.controllers import ControllerContext
from batkube.components.nodes import NodeCreator
from batkube.execution.latencies.delays import NO_DELAYS, Delays
from batkube.kernel.instants import Instant, rfc3339, seconds
from batkube.kernel.quantities import Quantity, parse_quantity
from batkube.kernel.streams import Streams
from batkube.platforms.reader import read_platform
from batkube.policies.runtime.policy_scheduler import PolicyChoice
from batkube.timing.loop import Loop
from batkube.workloads.container_rules.rules import ContainerRule, ContainerRules

START = Instant(seconds(1_000_000))


def count_pods(storage: str, obj: KubeObject, quota: KubeObject) -> dict[str, Quantity]:
    """Return the usage of an object: the number of unfinished pods."""
    return {"pods": parse_quantity(1)} if storage == "pods" and not is_finished(obj) else {}


def issue_token(account: KubeObject, secret: KubeObject, now: Instant) -> str:
    """Return a token that names account and Secret, instead of a signed one."""
    return f"{account['metadata']['name']} by {secret['metadata']['name']}"


class PlainApi:
    """Sets what controllers need: uids, generations, deletion timestamps. Nothing is validated."""

    def __init__(self, store: Store, now: Callable[[], Instant]) -> None:
        self.store = store
        self.now = now
        self._created_count = 0
        #: Error messages by kind: requests to create such objects are rejected.
        self.forbidden: dict[str, str] = {}

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        if storage in self.forbidden and not subresource:
            raise ApiError(403, "Forbidden", self.forbidden[storage])
        if subresource == "binding":
            return self._bind(key_of(obj), obj["target"]["name"], now)
        created = copy.deepcopy(obj)
        metadata = created["metadata"]
        self._created_count += 1
        metadata.setdefault("name", f"{metadata.pop('generateName', '')}{self._created_count:05x}")
        metadata |= {"uid": f"uid-{self._created_count:05}", "creationTimestamp": rfc3339(now), "generation": 1}
        if storage == "pods":
            created.setdefault("status", {"phase": "Pending"})
        key = key_of(created)
        if self.store.get(storage, key) is not None:
            raise ApiError(409, "AlreadyExists", f'{storage} "{metadata["name"]}" already exists')
        self.store.create(storage, [key], [created], now)
        return created

    def update(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        key = key_of(obj)
        old = self.store.get(storage, key)
        if old is None:
            raise ApiError(404, "NotFound", f"{storage} {key} not found")
        new: dict[str, Any] = copy.deepcopy(obj)
        if subresource == "status":
            new = {**copy.deepcopy(old), "status": new["status"]}
            # Deployments update annotations and status in one request.
            new["metadata"]["annotations"] = obj["metadata"].get("annotations", {})
        elif subresource == "":
            new["status"] = old.get("status", {})
            if new["spec" if "spec" in new else "metadata"] != old["spec" if "spec" in old else "metadata"]:
                new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        if new == old:
            return old
        self.store.replace(storage, [key], [new], now)
        if self._is_removable(storage, new):
            self.store.delete(storage, [key], now)
        return new

    def get_scale(self, reference: KubeObject, namespace: str) -> KubeObject:
        obj = self.store.get("deployments.apps", Key(f"{namespace}/{reference['name']}"))
        if obj is None:
            raise ApiError(404, "NotFound", f'deployments.apps "{reference["name"]}" not found')
        labels = ",".join(f"{key}={value}" for key, value in obj["spec"]["selector"]["matchLabels"].items())
        status = {"replicas": obj.get("status", {}).get("replicas", 0), "selector": labels}
        return {"metadata": obj["metadata"], "spec": {"replicas": obj["spec"]["replicas"]}, "status": status}

    def update_scale(self, reference: KubeObject, namespace: str, scale: KubeObject) -> None:
        obj = self.store.get("deployments.apps", Key(f"{namespace}/{reference['name']}"))
        assert obj is not None
        if "deployments.apps" in self.forbidden:
            raise ApiError(403, "Forbidden", self.forbidden["deployments.apps"])
        self.update("deployments.apps", {**obj, "spec": {**obj["spec"], **scale["spec"]}}, self.now())

    def _is_removable(self, storage: str, obj: KubeObject) -> bool:
        metadata = obj["metadata"]
        return (
            "deletionTimestamp" in metadata
            and not metadata.get("finalizers")
            and not obj.get("spec", {}).get("finalizers")
            and not metadata.get("deletionGracePeriodSeconds")
        )

    def _bind(self, key: Key, node: str, now: Instant) -> KubeObject:
        pod = self.store.get("pods", key)
        assert pod is not None
        status = {
            **pod["status"],
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(now)}],
        }
        bound = {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}
        self.store.replace("pods", [key], [bound], now)
        return bound

    def delete(
        self,
        storage: str,
        key: Key,
        now: Instant,
        *,
        propagation: str | None = None,
        grace_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        old = self.store.get(storage, key)
        if old is None or (uid is not None and old["metadata"]["uid"] != uid):
            raise ApiError(404, "NotFound", f"{storage} {key} not found")
        grace = 0
        if storage == "pods" and old["spec"].get("nodeName") and old["status"]["phase"] not in ("Succeeded", "Failed"):
            grace = old["spec"].get("terminationGracePeriodSeconds", 30) if grace_s is None else grace_s
        metadata = dict(old["metadata"])
        finalizers = list(metadata.get("finalizers", []))
        finalizer = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}.get(propagation or "")
        if finalizer and finalizer not in finalizers:
            finalizers.append(finalizer)
        metadata["deletionTimestamp"] = rfc3339(Instant(now + seconds(grace)))
        metadata["deletionGracePeriodSeconds"] = grace
        if finalizers:
            metadata["finalizers"] = finalizers
        terminating = {**old, "metadata": metadata}
        if storage == "namespaces":
            terminating["status"] = {**old.get("status", {}), "phase": "Terminating"}
        if self._is_removable(storage, terminating):
            self.store.delete(storage, [key], now)
        elif terminating != old:
            self.store.replace(storage, [key], [terminating], now)


class Cluster:
    """The cluster of a test, with shorthands for requests and manifests."""

    def __init__(
        self,
        platform: str,
        *,
        scheduler: PolicyChoice | bool = True,
        delays: Delays = NO_DELAYS,
        rules: Sequence[ContainerRule] = (),
    ) -> None:
        self.world = World(Streams(0))
        self.store, self.clock, self.loop = self.world.store, self.world.clock, Loop(self.world)
        self.clock.advance(START)
        self.api = PlainApi(self.store, lambda: self.clock.now)
        container_rules = ContainerRules(rules, self.world.streams)
        access = Access(lambda component: self.api, is_api=True)
        agents = start_cluster(
            self.world,
            access,
            KubeletOptions(delays=delays, rules=container_rules),
            ControllerContext(
                count_pods, PodUsage(self.store, container_rules, START), self.api, issue_token, "the authority"
            ),
        )
        assert agents is not None
        if scheduler:
            start_scheduler(self.world, access, None if scheduler is True else scheduler)
        self.api.create(
            "namespaces",
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "default"},
                "spec": {"finalizers": ["kubernetes"]},
            },
            START,
        )
        NodeCreator(access).register(read_platform(platform).machines, agents, START, {})
        self.run(1)

    @property
    def now(self) -> Instant:
        return self.clock.now

    def run(self, length_s: float) -> None:
        """Advance virtual time by `length_s`."""
        self.loop.run_until(Instant(self.clock.now + seconds(length_s)))

    def create(self, storage: str, obj: KubeObject) -> Key:
        return key_of(self.api.create(storage, obj, self.now))

    def get(self, storage: str, key: str) -> KubeObject:
        obj = self.store.get(storage, Key(key))
        assert obj is not None, f"{storage} {key} does not exist"
        return obj

    def change(self, storage: str, key: str, **spec: Any) -> None:  # noqa: ANN401
        """Update fields of an object's spec."""
        obj = self.get(storage, key)
        self.api.update(storage, {**obj, "spec": {**obj["spec"], **spec}}, self.now)

    def delete(self, storage: str, key: str, **options: Any) -> None:  # noqa: ANN401
        self.api.delete(storage, Key(key), self.now, **options)

    def pods(self, phase: str | None = None) -> list[KubeObject]:
        return [pod for pod in self.store.all("pods").values() if phase is None or pod["status"]["phase"] == phase]

    def events(self, reason: str) -> list[str]:
        return [event["message"] for event in self.store.all("events").values() if event["reason"] == reason]

    # Manifests

    @staticmethod
    def pod_spec(*, cpu: str = "1", restart: str = "Always", **more: Any) -> dict[str, Any]:  # noqa: ANN401
        return {
            "containers": [{"name": "app", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}],
            "restartPolicy": restart,
            **more,
        }

    @classmethod
    def pod(cls, name: str, annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
            "spec": cls.pod_spec(**spec),
        }

    @classmethod
    def template(cls, labels: dict[str, str], annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
        return {"metadata": {"labels": labels, "annotations": annotations or {}}, "spec": cls.pod_spec(**spec)}

    @classmethod
    def deployment(cls, name: str = "web", replicas: int = 3, image: str = "app:1", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
        template = cls.template({"app": name})
        template["spec"]["containers"][0]["image"] = image
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": template,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
                **spec,
            },
        }

    @classmethod
    def job(cls, name: str = "work", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
        labels = {"job-name": name}
        template = cls.template(labels, {"batkube.io/duration": "30s", **(annotations or {})}, restart="Never")
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "parallelism": 1,
                "completions": 1,
                "backoffLimit": 6,
                "selector": {"matchLabels": labels},
                "template": template,
                **spec,
            },
        }
