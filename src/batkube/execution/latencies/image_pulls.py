"""Images on nodes: which node has which, and whose turn it is to pull.

A kubelet pulls one image at a time (Kubernetes: KubeletConfiguration.serializeImagePulls, true by default). What it
does for a pod depends on the container's imagePullPolicy:

* `IfNotPresent`: pulls the image if the node has none, else nothing;
* `Always`, the default for an image without a tag or with `:latest`: asks the registry each time, which is a full
  *pull* if the node has no such image and a short *check* if it has;
* `Never`: nothing.

A pod whose image is being pulled for another waits for that pull.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Duration, Instant, after


def pull_policy_of(container: KubeObject) -> str:
    """Return when a container's image is pulled, with Kubernetes' default (pkg/apis/core/v1, SetDefaults_Container)."""
    policy: str | None = container.get("imagePullPolicy")
    if policy:
        return policy
    name = container["image"].rpartition("/")[2]
    if "@" in name:
        return "IfNotPresent"
    return "Always" if name.partition(":")[2] in ("", "latest") else "IfNotPresent"


class NodeImages:
    """The images of all nodes of one run. Its three questions to chance are asked in the order of the pods' binding."""

    def __init__(
        self, pull: Callable[[], Duration], check: Callable[[], Duration], is_there: Callable[[], bool]
    ) -> None:
        """`pull` and `check` say how long one takes; `is_there`, whether a node has an image when the run begins."""
        self._pull = pull
        self._check = check
        self._is_cached = is_there
        #: When each image is, or was, there, by node and image.
        self._ready: dict[tuple[str, str], Instant] = {}
        #: The pulls that each node's kubelet has before it, in order; they never overlap.
        self._pull_slots: dict[str, list[tuple[Instant, Instant]]] = {}

    def available_at(self, now: Instant, noticed: Instant, node: str, container: KubeObject) -> Instant:
        """Return when the image of a pod bound at `now` and known to its kubelet at `noticed` can be used."""
        policy = pull_policy_of(container)
        if policy == "Never":
            return noticed
        place = (node, container["image"])
        ready = self._ready.get(place)
        if ready is None and self._is_cached():
            ready = self._ready[place] = now
        if ready is None:
            length = self._pull()
            done = self._reserve_pull_slot(now, noticed, node, length)
            self._ready[place] = done if length else now
            return done
        usable = max(noticed, ready)
        return self._reserve_pull_slot(now, usable, node, self._check()) if policy == "Always" else usable

    def _reserve_pull_slot(self, now: Instant, earliest: Instant, node: str, length: Duration) -> Instant:
        """Take the first stretch of `length` that the node's puller has free; return its end."""
        if not length:
            return earliest
        taken = [turn for turn in self._pull_slots.get(node, ()) if turn[1] > now]
        begin = earliest
        for start, end in taken:
            if after(begin, length) <= start:
                break
            begin = max(begin, end)
        done = after(begin, length)
        self._pull_slots[node] = sorted([*taken, (begin, done)])
        return done
