"""A scheduler in Python with the official client: it binds each pod to a random free node.

    pip install kubernetes
    batkube run … --scheduler python:examples/programs/random_scheduler.py

It does not depend on Batkube. A node is free if it has no unfinished pod. Pods are bound in the order of their waits.
"""

import datetime
import os
import random

from kubernetes import client, config, watch

ENDED = ("Succeeded", "Failed")
CONFLICT = 409


class RandomScheduler:
    def __init__(self, core: client.CoreV1Api, name: str) -> None:
        self._core = core
        self._name = name
        self._free = sorted(node.metadata.name for node in core.list_node().items)
        self._waiting: dict[tuple[str, str], None] = {}
        self._places: dict[tuple[str, str], str] = {}

    def handle(self, kind: str, pod: client.V1Pod) -> None:
        """Handle a change of a pod, and bind pending pods."""
        key = pod.metadata.namespace, pod.metadata.name
        if kind == "DELETED" or pod.status.phase in ENDED:
            self._waiting.pop(key, None)
            if key in self._places:
                self._free.append(self._places.pop(key))
        elif pod.spec.scheduler_name == self._name and not pod.spec.node_name and key not in self._places:
            self._waiting[key] = None
        while self._waiting and self._free:
            self._bind(next(iter(self._waiting)))

    def _bind(self, key: tuple[str, str]) -> None:
        del self._waiting[key]
        node = self._free.pop(random.randrange(len(self._free)))
        self._places[key] = node
        target = client.V1ObjectReference(api_version="v1", kind="Node", name=node)
        binding = client.V1Binding(metadata=client.V1ObjectMeta(name=key[1]), target=target)
        try:
            # The response is a Status, which the client would parse as a Binding without a target.
            self._core.create_namespaced_binding(key[0], binding, _preload_content=False)
        except client.ApiException as error:
            if error.status != CONFLICT:
                raise
            self._free.append(self._places.pop(key))  # another scheduler was faster
            return
        print(datetime.datetime.now(datetime.UTC).isoformat(), "/".join(key), "on", node, flush=True)


def main() -> None:
    config.load_kube_config()
    core = client.CoreV1Api()
    scheduler = RandomScheduler(core, os.environ.get("BATKUBE_SCHEDULER_NAME", "random-scheduler"))
    for event in watch.Watch().stream(core.list_pod_for_all_namespaces):
        scheduler.handle(event["type"], event["object"])


if __name__ == "__main__":
    main()
