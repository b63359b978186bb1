"""Whatever happens to a cluster, a picture that follows change by change equals one made from the cluster."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.opt_in import WANTED

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import Instant
from batkube.kubeflux.cache_sync import CacheSync, SyncMode
from batkube.kubeflux.scheduler_cache import SchedulerCache

NAME = "kubeflux"


def a_node(name: str, cpu: str = "4", *, state: str = "", zone: str = "") -> KubeObject:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    spec: KubeObject = {"unschedulable": True} if state == "cordoned" else {}
    if state == "tainted":
        spec["taints"] = [{"key": "spot", "effect": "NoSchedule"}]
    if state == "left out":
        labels["fluence/skip"] = ""
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110", **({"nvidia.com/gpu": "2"} if cpu == "8" else {})}
    conditions = [{"type": "Ready", "status": "Unknown" if state == "silent" else "True"}]
    status = {"allocatable": allocatable, "conditions": conditions}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}


def a_pod(name: str, cpu: str, node: str = "", scheduler: str = NAME, phase: str = "Pending") -> KubeObject:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec: KubeObject = {"schedulerName": scheduler, "containers": [container]}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": "default", "uid": name}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


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
        st.tuples(st.just("state"), node_names, st.sampled_from(["cordoned", "tainted", "silent", "left out"])),
        st.tuples(st.just("resize"), pods, st.sampled_from(["1", "3"])),
        st.tuples(st.just("refused"), pods, st.just("1")),
        st.tuples(st.just("round"), st.just(0), st.just("")),
        st.tuples(st.just("restart"), st.just(0), st.just("")),
        st.tuples(st.just("lose node"), node_names, st.just("")),
        st.tuples(st.just("deaf"), st.integers(1, 4), st.just("")),
    ),
    max_size=40,
)


class Cluster:
    """The truth, and a store that follows it by watches that may be lost for a while."""

    def __init__(self) -> None:
        self.truth: dict[str, dict[Key, KubeObject]] = {NODE: {}, POD: {}}
        self.store = Store()
        self.deaf_for = 0

    def set(self, kind: str, key: Key, obj: KubeObject | None) -> None:
        if obj is None:
            self.truth[kind].pop(key, None)
        else:
            self.truth[kind][key] = obj
        self.deaf_for -= 1
        if self.deaf_for <= 0:
            self.catch_up()

    def catch_up(self) -> None:
        """List, and commit what differs, as a mirror does after a lost watch."""
        now = Instant(0)
        for kind, objects in self.truth.items():
            known = self.store.all(kind)
            for key in [key for key in known if key not in objects]:
                self.store.delete(kind, [key], now)
            for key, obj in objects.items():
                if key not in known:
                    self.store.create(kind, [key], [obj], now)
                elif known[key] != obj:
                    self.store.replace(kind, [key], [obj], now)


@settings(deadline=None, max_examples=2_000 if WANTED else 150)
@given(steps)
def test_deltas_leave_the_same_picture_as_making_it_anew(history: list[tuple[str, object, str]]) -> None:
    cluster = Cluster()
    keeper = CacheSync(cluster.store, SyncMode.DELTAS, NAME)
    for number in range(3):
        cluster.set(NODE, Key(f"n{number}"), a_node(f"n{number}"))
    keeper.begin_round(Instant(0))

    for step, what, value in history:
        if step == "restart":
            # The one before goes on hearing, and nobody asks it.
            keeper = CacheSync(cluster.store, SyncMode.DELTAS, NAME)
            keeper.begin_round(Instant(0))
        _carry_out(cluster, keeper, step, what, value)
    cluster.catch_up()

    rebuilt = SchedulerCache.build(cluster.truth[NODE].values(), cluster.truth[POD].values())
    assert keeper.cache.accounts == rebuilt.accounts
    assert keeper.cache.free_vertices() == rebuilt.free_vertices()


def _carry_out(cluster: Cluster, keeper: CacheSync, step: str, what: object, value: str) -> None:
    key = Key(f"default/p{what}")
    pod = cluster.truth[POD].get(key)
    match step:
        case "bind here" if pod is None:
            cluster.set(POD, key, a_pod(f"p{what}", value))
            places = keeper.cache.match([{"cpu": 1000, "pods": 1}])
            # While it is deaf it has not heard of the pod either.
            if places is not None and cluster.store.get(POD, key) is not None:
                keeper.assume(key, places[0], {"cpu": _milli(value), "pods": 1}, Instant(0))
                cluster.set(POD, key, a_pod(f"p{what}", value, places[0]))
        case "bind elsewhere" if pod is None:
            cluster.set(POD, key, a_pod(f"p{what}", value, "n0", "others", "Running"))
        case "end" if pod is not None:
            cluster.set(POD, key, {**pod, "status": {"phase": "Succeeded"}})
        case "delete":
            cluster.set(POD, key, None)
        case "node":
            cluster.set(NODE, Key(str(what)), a_node(str(what), value))
        case "zone":
            cluster.set(NODE, Key(str(what)), a_node(str(what), zone=value))
        case "state":
            cluster.set(NODE, Key(str(what)), a_node(str(what), state=value))
        case "resize" if pod is not None:
            container = {"name": "c", "resources": {"requests": {"cpu": value}}}
            cluster.set(POD, key, {**pod, "spec": {**pod["spec"], "containers": [container]}})
        case "refused" if pod is None:
            keeper.assume(key, "n0", {"cpu": 1000, "pods": 1}, Instant(0))
            keeper.forget_assumed(key)
        case "round":
            keeper.begin_round(Instant(0))
        case "lose node":
            cluster.set(NODE, Key(str(what)), None)
        case "deaf" if isinstance(what, int):
            cluster.deaf_for = what


def _milli(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)


def test_a_match_is_where_there_is_room() -> None:
    nodes = [a_node("n0"), a_node("n1", "8"), a_node("n2", state="cordoned")]
    held = [a_pod("other", "2500m", "n0", "others", "Running")]
    picture = SchedulerCache.build(nodes, held)

    assert picture.free_vertices() == {"n0": {"core": 1, "memory": 8}, "n1": {"core": 8, "memory": 8, "gpu": 2}}
    assert picture.match([{"cpu": 2000}] * 4) == ["n1"] * 4
    assert picture.match([{"cpu": 2000}] * 5) is None
    assert picture.match([{"cpu": 1000}], frozenset({"n0"})) == ["n0"]
    assert picture.match([{"nvidia.com/gpu": 3}]) is None
    assert picture.match([{"example.com/fpga": 1}]) is None
