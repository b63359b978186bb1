"""Simulated resource usage of pods, as `kubectl top` and autoscalers see it.

Nothing really runs, so by default a running container uses exactly its requests. The usage can be set, in order of
precedence, by the annotations `batkube.io/cpu-usage` and `batkube.io/memory-usage` of the pod, or by a rule that
matches the container (`workloads.container_rules`). A rule may also define a load, which its ready containers share
equally, as behind a Service: the more containers there are, the less each of them uses.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from batkube.cluster.object_meta import annotations_of
from batkube.cluster.pods.accessors import is_ready, is_running
from batkube.cluster.store import KubeObject, Store
from batkube.kernel.instants import START, Duration, Instant, instant_of, seconds
from batkube.kernel.quantities import CPU, MEMORY, Quantity, format_amount, parse_quantity
from batkube.workloads.container_rules.rules import ContainerRules

CPU_USAGE, MEMORY_USAGE = "batkube.io/cpu-usage", "batkube.io/memory-usage"
#: The measurement window that metrics report; metrics-server's default resolution is of this order.
WINDOW: Duration = seconds(15)

Usage = dict[str, Quantity]
"""The used amounts of cpu and memory."""


class LoadState(NamedTuple):
    """A load: the place of its rule, the containers that share it, and its millicores now."""

    rule: str
    containers: str
    millicores: int


class PodUsage:
    """Computes the usage of a pod's containers at an instant."""

    def __init__(self, store: Store, rules: ContainerRules, start: Instant = START) -> None:
        """`start` is the instant at which loads begin."""
        self._store = store
        self._rules = rules
        self._start = start
        #: A version of the store, and the number of containers that share each load then, by the load's rule.
        self._container_counts: tuple[int, dict[str, int]] = -1, {}

    def of(self, pod: KubeObject, now: Instant) -> dict[str, Usage]:
        """Return the usage of each running container of a pod; a pod that does not run has none."""
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

    def loads(self, now: Instant) -> list[LoadState]:
        """Return the loads that rules define."""
        age = Duration(now - self._start)
        return [LoadState(rule.place, rule.pattern_text(), load.value_at(age)) for rule, load in self._rules.loads()]

    def set_load(self, rule: str, millicores: int, now: Instant) -> bool:
        """Let the load of the rule at this place be another one from now on; return False if it has none."""
        return self._rules.set_load(rule, millicores, Duration(now - self._start))

    def _from_rule(self, pod: KubeObject, container: KubeObject, status: KubeObject, now: Instant) -> dict[str, str]:
        """Return the usage of a running container as far as a rule defines it."""
        behaviour = self._rules.behaviour_of(pod, container, status["restartCount"], is_init=False)
        age = Duration(now - instant_of(status["state"]["running"]["startedAt"]))
        curves = {CPU: behaviour.cpu, MEMORY: behaviour.memory}
        usage = {name: format_amount(name, curve.value_at(age)) for name, curve in curves.items() if curve is not None}
        if behaviour.load is not None:
            total = behaviour.load.cpu.value_at(Duration(now - self._start))
            amount = total // self._container_count(behaviour.load.rule) if is_ready(pod) else 0
            usage[CPU] = format_amount(CPU, amount)
        return usage

    def _container_count(self, rule: str) -> int:
        """Return how many containers share the load of a rule."""
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
