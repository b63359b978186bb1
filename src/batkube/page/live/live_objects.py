"""The objects of a live cluster as YAML: through the API if there is one, else from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from batkube.cluster.client import ApiError
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.store import Key, KubeObject
from batkube.cluster.world import World
from batkube.page.answers import Answer, NoAnswer, text_answer
from batkube.page.live.api_client import ApiClient
from batkube.page.live.recorder import Recorder
from batkube.page.manifests import object_yaml, recorded_job_yaml

#: By kind on the page: where the store and the API have it.
_STORAGES = {"node": NODE, "pod": POD, "job": "jobs.batch"}
_KINDS = {"node": ("v1", "Node"), "pod": ("v1", "Pod"), "job": ("batch/v1", "Job")}

_FROM_STORE = "# From the run's store. With a policy alone, objects have only what schedulers and kubelets need.\n"

FindObject = Callable[[str, str], KubeObject | None]
"""Returns the object of a kind (`node`, `pod`, `job`) with a name, `namespace/name` outside of `default`."""


class LiveObjects:
    """Answers about the objects of a cluster as they are now."""

    def __init__(self, recorder: Recorder, world: World, client: ApiClient | None) -> None:
        """With a `client`, objects are got from the API."""
        self._recorder = recorder
        self._find = _find_in_store(world) if client is None else _find_in_api(client)
        self._remark = _FROM_STORE if client is None else ""

    def yaml(self, parameters: Mapping[str, str]) -> Answer:
        """Return a job, a pod or a node as YAML."""
        return text_answer(lambda: self._yaml(parameters.get("kind", ""), parameters.get("name", "")))

    def _yaml(self, kind: str, name: str) -> str:
        if kind not in _STORAGES:
            raise NoAnswer("only nodes, pods and jobs are shown")
        jobs = [] if kind != "job" else [job for job in self._recorder.jobs.jobs if job.key == name]
        value = self._find(kind, name)
        if value is not None:
            return self._remark + object_yaml(value)
        if jobs and jobs[0].size is not None:
            return recorded_job_yaml(jobs[0], is_live=True)
        raise NoAnswer(f"{kind} {name} does not exist any more: only what exists now has YAML")


def _find_in_store(world: World) -> FindObject:
    """Return a function that finds objects in the store: of a run without an API, they have only what policies need."""

    def find(kind: str, name: str) -> KubeObject | None:
        key = Key(name if kind == "node" else _with_namespace(name))
        value = world.store.get(_STORAGES[kind], key)
        version, object_kind = _KINDS[kind]
        return None if value is None else {"apiVersion": version, "kind": object_kind, **value}

    return find


def _find_in_api(client: ApiClient) -> FindObject:
    """Return a function that gets objects from the API."""

    def find(kind: str, name: str) -> KubeObject | None:
        namespace, _, short = _with_namespace(name).rpartition("/")
        paths = {
            "node": f"/api/v1/nodes/{name}",
            "pod": f"/api/v1/namespaces/{namespace}/pods/{short}",
            "job": f"/apis/batch/v1/namespaces/{namespace}/jobs/{short}",
        }
        if "/" in (name if kind == "node" else short + namespace):
            return None
        try:
            return client.get(paths[kind])
        except ApiError as refusal:
            if refusal.code == 404:
                return None
            raise NoAnswer(str(refusal)) from refusal

    return find


def _with_namespace(name: str) -> str:
    return name if "/" in name else f"default/{name}"
