"""After any changes of a cluster, a cache in mode `deltas` equals one built from the cluster."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kubeflux.conftest import SCHEDULER, a_node, a_pod
from tests.opt_in import IS_ENABLED

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import Instant
from batkube.kubeflux.cache_sync import CacheSync, SyncMode
from batkube.kubeflux.scheduler_cache import SchedulerCache

pods = st.integers(0, 5)
node_names = st.integers(0, 3).map(lambda number: f"n{number}")
steps = st.lists(
    st.one_of(
        st.tuples(st.just("bind here"), pods, st.sampled_from(["500m", "1", "2500m"])),
        st.tuples(st.just("bind elsewhere"), pods, st.sampled_from(["250m", "2"])),
        st.tuples(st.just("end"), pods, st.just("")),
        st.tuples(st.just("delete"), pods, st.just("")),
        st.tuples(st.just("node"), node_names, st.sampled_from(["2", "4", "8"])),
        st.tuples(st.just("zone"), node_names, st.sampled_from(["a", "b"])),
        st.tuples(st.just("state"), node_names, st.sampled_from(["cordoned", "tainted", "not ready", "excluded"])),
        st.tuples(st.just("resize"), pods, st.sampled_from(["1", "3"])),
        st.tuples(st.just("reject binding"), pods, st.just("1")),
        st.tuples(st.just("round"), st.just(0), st.just("")),
        st.tuples(st.just("restart"), st.just(0), st.just("")),
        st.tuples(st.just("delete node"), node_names, st.just("")),
        st.tuples(st.just("lose watch"), st.integers(1, 4), st.just("")),
    ),
    max_size=40,
)


class Cluster:
    """The actual objects, and a store that mirrors them through watches, which may be interrupted."""

    def __init__(self) -> None:
        self.actual: dict[str, dict[Key, KubeObject]] = {NODE: {}, POD: {}}
        self.store = Store()
        self.missed_changes = 0

    def set(self, kind: str, key: Key, obj: KubeObject | None) -> None:
        if obj is None:
            self.actual[kind].pop(key, None)
        else:
            self.actual[kind][key] = obj
        self.missed_changes -= 1
        if self.missed_changes <= 0:
            self.catch_up()

    def catch_up(self) -> None:
        """Copy all differences to the store, as a mirror does after a lost watch."""
        now = Instant(0)
        for kind, objects in self.actual.items():
            mirrored = self.store.all(kind)
            for key in [key for key in mirrored if key not in objects]:
                self.store.delete(kind, [key], now)
            for key, obj in objects.items():
                if key not in mirrored:
                    self.store.create(kind, [key], [obj], now)
                elif mirrored[key] != obj:
                    self.store.replace(kind, [key], [obj], now)


@settings(deadline=None, max_examples=2_000 if IS_ENABLED else 150)
@given(steps)
def test_a_cache_updated_by_deltas_equals_a_rebuilt_one(history: list[tuple[str, object, str]]) -> None:
    cluster = Cluster()
    sync = CacheSync(cluster.store, SyncMode.DELTAS, SCHEDULER)
    for number in range(3):
        cluster.set(NODE, Key(f"n{number}"), a_node(f"n{number}"))
    sync.begin_round(Instant(0))

    for step, target, value in history:
        if step == "restart":
            # The previous one stays subscribed but is not used any more.
            sync = CacheSync(cluster.store, SyncMode.DELTAS, SCHEDULER)
            sync.begin_round(Instant(0))
        _apply(cluster, sync, step, target, value)
    cluster.catch_up()

    rebuilt = SchedulerCache.build(cluster.actual[NODE].values(), cluster.actual[POD].values())
    assert sync.cache.accounts == rebuilt.accounts
    assert sync.cache.free_vertices() == rebuilt.free_vertices()


def _apply(cluster: Cluster, sync: CacheSync, step: str, target: object, value: str) -> None:
    key = Key(f"default/p{target}")
    pod = cluster.actual[POD].get(key)
    match step:
        case "bind here" if pod is None:
            cluster.set(POD, key, a_pod(f"p{target}", value))
            nodes = sync.cache.match([{"cpu": 1000, "pods": 1}])
            # Without its watch the store does not have the pod yet.
            if nodes is not None and cluster.store.get(POD, key) is not None:
                sync.assume(key, nodes[0], {"cpu": _milli(value), "pods": 1}, Instant(0))
                cluster.set(POD, key, a_pod(f"p{target}", value, nodes[0]))
        case "bind elsewhere" if pod is None:
            cluster.set(POD, key, a_pod(f"p{target}", value, "n0", "others", "Running"))
        case "end" if pod is not None:
            cluster.set(POD, key, {**pod, "status": {"phase": "Succeeded"}})
        case "delete":
            cluster.set(POD, key, None)
        case "node":
            cluster.set(NODE, Key(str(target)), a_node(str(target), value))
        case "zone":
            cluster.set(NODE, Key(str(target)), a_node(str(target), zone=value))
        case "state":
            cluster.set(NODE, Key(str(target)), a_node(str(target), state=value))
        case "resize" if pod is not None:
            container = {"name": "c", "resources": {"requests": {"cpu": value}}}
            cluster.set(POD, key, {**pod, "spec": {**pod["spec"], "containers": [container]}})
        case "reject binding" if pod is None:
            sync.assume(key, "n0", {"cpu": 1000, "pods": 1}, Instant(0))
            sync.forget_assumed(key)
        case "round":
            sync.begin_round(Instant(0))
        case "delete node":
            cluster.set(NODE, Key(str(target)), None)
        case "lose watch" if isinstance(target, int):
            cluster.missed_changes = target


def _milli(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
