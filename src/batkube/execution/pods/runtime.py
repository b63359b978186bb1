"""The interface between kubelets and the runtimes of their pods.

    bound ─▶ kubelet: admitted ─▶ runtime: started … ended ─▶ kubelet: resources released ─▶ runtime: end reported

A kubelet admits, stops and removes pods and accounts for their resources. A runtime starts the containers and reports
their states, as containerd does behind the Container Runtime Interface. There are two runtimes: `containers.pods` runs
each container by its own plan; the containers of a job's pods run until the job's work is done (`jobs.job_runtime`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from batkube.cluster.pods.pod_groups import PodGroup
from batkube.cluster.store import Batch, KubeObject
from batkube.kernel.instants import Instant

if TYPE_CHECKING:
    from batkube.execution.scripts.environment import ContainerFiles

GroupT = TypeVar("GroupT", bound=PodGroup)

OnEnded = Callable[[PodGroup, Sequence[int], Instant], None]
"""Called with pods of a group, by rank, when their containers have ended by themselves."""


class PodRuntime(Protocol[GroupT]):
    """Runs the containers of pods; ranks say which pods of a group are concerned."""

    #: Set by the kubelets.
    on_ended: OnEnded

    def groups_in(self, batch: Batch, now: Instant) -> Iterable[tuple[GroupT, Sequence[int], Sequence[int]]]:
        """Return the groups of this runtime in a batch of changes.

        Each group comes with the positions of its pods in the batch, and with their ranks. Pods that concern no node
        may be left out: unbound ones, and deleted ones that no node had admitted.
        """

    def record_binding(self, group: GroupT, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Record that pods were bound, before their nodes admit or reject them."""

    def reject(self, group: GroupT, ranks: Sequence[int], reason: str, message: str, now: Instant) -> None:
        """Report that pods are not admitted."""

    def admit(self, group: GroupT, starts: Mapping[Instant, Sequence[int]], now: Instant) -> None:
        """Book the starts of admitted pods; `starts` has their ranks by the instant at which they will run."""

    def update(self, group: GroupT, rank: int, pod: KubeObject, now: Instant) -> None:
        """Handle an update of an admitted pod."""

    def files_of(self, group: GroupT) -> Mapping[str, ContainerFiles]:
        """Return the files of the containers that have run, by container name."""

    def begin_stop(self, group: GroupT, rank: int, now: Instant) -> None:
        """Send the containers of a deleted pod the signal to stop."""

    def kill(self, group: GroupT, rank: int, now: Instant) -> None:
        """End the containers of a pod that still run."""

    def release(self, group: GroupT, ranks: Sequence[int], now: Instant) -> None:
        """Release what pods hold besides the resources of their nodes, such as addresses."""

    def report_end(self, group: GroupT, ranks: Sequence[int], now: Instant) -> None:
        """Report that all containers of pods have ended."""

    def on_gone(self, group: GroupT, ranks: Sequence[int], now: Instant) -> None:
        """Handle pods that were deleted, ended by another component, or lost with their node."""

    def on_held(self, group: GroupT, ranks: Sequence[int], nodes: Sequence[str], now: Instant) -> None:
        """Handle pods that were bound to nodes without a running kubelet."""

    def on_node_lost(self, group: GroupT, now: Instant) -> None:
        """Handle the failure or deletion of a node with pods of the group."""

    def resume(self, group: GroupT, rank: int, pod: KubeObject, now: Instant) -> GroupT | None:
        """Return the group to admit in place of a pod whose node is back, or report its end and return None.

        A pod that is being deleted is not admitted again.
        """


AnyRuntime = PodRuntime[Any]
