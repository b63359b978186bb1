"""What pods use: what `kubectl top` shows and what autoscalers go by.

Nothing really runs, so a running container uses exactly the requests that it has, and nothing of what it has none of; a
rule that matches it may tell otherwise (`workloads.rules`), and before it the annotations `batkube.io/cpu-usage` and
`batkube.io/memory-usage` on its pod. A rule may also bring a load, which the ready containers that it matches share
alike, as behind a Service: the more there are, the less each has to do.
"""

from __future__ import annotations

from collections import Counter

from batkube.cluster.object_meta import annotations_of
from batkube.cluster.pods.accessors import is_ready, is_running
from batkube.cluster.store import KubeObject, Store
from batkube.kernel.instants import START, Duration, Instant, instant_of, seconds
from batkube.kernel.quantities import CPU, MEMORY, Quantity, format_amount, parse_quantity
from batkube.workloads.container_rules.rules import ContainerRules

CPU_USAGE, MEMORY_USAGE = "batkube.io/cpu-usage", "batkube.io/memory-usage"
#: Over how long the use is said to be measured; metrics-server's default resolution is of this order.
WINDOW: Duration = seconds(15)

Usage = dict[str, Quantity]
"""How much of cpu and of memory."""


class PodUsage:
    """Tells what the containers of a pod use at an instant."""

    def __init__(self, store: Store, rules: ContainerRules, start: Instant = START) -> None:
        """`start` is when loads begin."""
        self._store = store
        self._rules = rules
        self._start = start
        #: How many containers share each load, by its rule, at a version of the store.
        self._container_counts: tuple[int, dict[str, int]] = -1, {}

    def of(self, pod: KubeObject, now: Instant) -> dict[str, Usage]:
        """Return what each running container of a pod uses; nothing is measured of a pod that does not run."""
        if not is_running(pod):
            return {}
        annotations = annotations_of(pod)
        annotated = {CPU: annotations.get(CPU_USAGE), MEMORY: annotations.get(MEMORY_USAGE)}
        annotated = {resource: text for resource, text in annotated.items() if text is not None}
        statuses = {status["name"]: status for status in pod["status"].get("containerStatuses") or ()}
        usages = {}
        for container in pod["spec"]["containers"]:
            status = statuses.get(container["name"], {})
            if "running" in status.get("state", {}):
                requests = (status.get("resources") or container.get("resources") or {}).get("requests") or {}
                texts = {**requests, **self._from_rule(pod, container, status, now), **annotated}
                usages[container["name"]] = {name: _quantity(texts.get(name, "0")) for name in (CPU, MEMORY)}
        return usages

    def _from_rule(self, pod: KubeObject, container: KubeObject, status: KubeObject, now: Instant) -> dict[str, str]:
        """Return what a rule says that a running container uses."""
        conduct = self._rules.behaviour_of(pod, container, status["restartCount"], is_init=False)
        age = Duration(now - instant_of(status["state"]["running"]["startedAt"]))
        curves = {CPU: conduct.cpu, MEMORY: conduct.memory}
        said = {name: format_amount(name, curve.value_at(age)) for name, curve in curves.items() if curve is not None}
        if conduct.load is not None:
            whole = conduct.load.cpu.value_at(Duration(now - self._start))
            amount = whole // self._container_count(conduct.load.rule) if is_ready(pod) else 0
            said[CPU] = format_amount(CPU, amount)
        return said

    def _container_count(self, rule: str) -> int:
        """Return how many containers share the load of a rule; one that asks is among them."""
        version, sharers = self._container_counts
        if version != self._store.version:
            loads = (
                self._rules.load_of(pod, container)
                for pod, _ in self._store.entries("pods").values()
                if is_running(pod) and is_ready(pod)
                for container in pod["spec"]["containers"]
            )
            sharers = dict(Counter(load.rule for load in loads if load is not None))
            self._container_counts = self._store.version, sharers
        return sharers[rule]


def _quantity(text: str) -> Quantity:
    try:
        return parse_quantity(text)
    except ValueError:
        return Quantity(0)
