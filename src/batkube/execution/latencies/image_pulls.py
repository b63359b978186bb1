"""Image pulls: the images on each node, and the queue of pulls of its kubelet.

A kubelet pulls one image at a time (Kubernetes: KubeletConfiguration.serializeImagePulls, true by default). The pull of
a pod's image depends on the container's imagePullPolicy:

* `IfNotPresent`: a pull if the image is not on the node, else nothing;
* `Always`, the default for an image without a tag or with `:latest`: a full *pull* if the image is not on the node, a
  short *check* against the registry if it is;
* `Never`: nothing.

A pod whose image is already being pulled for another pod waits for that pull.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, Instant, after


def pull_policy_of(container: KubeObject) -> str:
    """Return the imagePullPolicy, or its default (Kubernetes: pkg/apis/core/v1/defaults.go, SetDefaults_Container)."""
    policy: str | None = container.get("imagePullPolicy")
    if policy:
        return policy
    name = container["image"].rpartition("/")[2]
    if "@" in name:
        return "IfNotPresent"
    return "Always" if name.partition(":")[2] in ("", "latest") else "IfNotPresent"


class NodeImages:
    """The images of all nodes of one run. Random draws are made in the order in which pods are bound."""

    def __init__(
        self, pull: Callable[[], Duration], check: Callable[[], Duration], is_there: Callable[[], bool]
    ) -> None:
        """`pull` and `check` draw a length; `is_there` draws whether a node has an image when the run begins."""
        self._pull = pull
        self._check = check
        self._is_cached = is_there
        #: When each image is present, by node and image.
        self._ready: dict[tuple[str, str], Instant] = {}
        #: The begin and end of pending pulls per node, sorted; they do not overlap.
        self._pull_slots: dict[str, list[tuple[Instant, Instant]]] = {}

    def available_at(self, now: Instant, noticed: Instant, node: str, container: KubeObject) -> Instant:
        """Return when a pod has its image; the pod is bound at `now`, and seen by its kubelet at `noticed`."""
        policy = pull_policy_of(container)
        if policy == "Never":
            return noticed
        node_image = (node, container["image"])
        ready = self._ready.get(node_image)
        if ready is None and self._is_cached():
            ready = self._ready[node_image] = now
        if ready is None:
            length = self._pull()
            end = self._reserve_pull_slot(now, noticed, node, length)
            self._ready[node_image] = end if length else now
            return end
        usable = max(noticed, ready)
        return self._reserve_pull_slot(now, usable, node, self._check()) if policy == "Always" else usable

    def _reserve_pull_slot(self, now: Instant, earliest: Instant, node: str, length: Duration) -> Instant:
        """Reserve the node's first free interval of `length` for a pull; return its end."""
        if not length:
            return earliest
        slots = [slot for slot in self._pull_slots.get(node, ()) if slot[1] > now]
        begin = earliest
        for start, end in slots:
            if after(begin, length) <= start:
                break
            begin = max(begin, end)
        finish = after(begin, length)
        self._pull_slots[node] = sorted([*slots, (begin, finish)])
        return finish
