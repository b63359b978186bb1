"""Whatever happens to a cluster, a picture that follows change by change equals one made from the cluster."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.cluster.mapping import NODE, POD
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import Instant
from batkube.kubeflux.picture import ClusterPicture
from batkube.kubeflux.synchronisation import PictureKeeper, SyncMode

NAME = "kubeflux"


def a_node(name: str, cpu: str = "4", *, is_open: bool = True, zone: str = "") -> KubeObject:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    spec = {} if is_open else {"unschedulable": True}
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": allocatable}}


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
        st.tuples(st.just("cordon"), node_names, st.just("4")),
        st.tuples(st.just("lose node"), node_names, st.just("")),
        st.tuples(st.just("deaf"), st.integers(1, 4), st.just("")),
    ),
    max_size=30,
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


@settings(deadline=None, max_examples=150)
@given(steps)
def test_deltas_leave_the_same_picture_as_making_it_anew(history: list[tuple[str, object, str]]) -> None:
    cluster = Cluster()
    keeper = PictureKeeper(cluster.store, SyncMode.DELTAS, NAME)
    for number in range(3):
        cluster.set(NODE, Key(f"n{number}"), a_node(f"n{number}"))
    keeper.begin_round(Instant(0))

    for step, what, value in history:
        _carry_out(cluster, keeper, step, what, value)
    cluster.catch_up()

    rebuilt = ClusterPicture.of(cluster.truth[NODE].values(), cluster.truth[POD].values())
    assert keeper.picture.accounts == rebuilt.accounts
    assert keeper.picture.free() == rebuilt.free()


def _carry_out(cluster: Cluster, keeper: PictureKeeper, step: str, what: object, value: str) -> None:
    key = Key(f"default/p{what}")
    pod = cluster.truth[POD].get(key)
    match step:
        case "bind here" if pod is None:
            cluster.set(POD, key, a_pod(f"p{what}", value))
            places = keeper.picture.match([{"cpu": 1000, "pods": 1}])
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
        case "cordon":
            cluster.set(NODE, Key(str(what)), a_node(str(what), is_open=False))
        case "lose node":
            cluster.set(NODE, Key(str(what)), None)
        case "deaf" if isinstance(what, int):
            cluster.deaf_for = what


def _milli(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)


def test_a_match_is_where_there_is_room() -> None:
    nodes = [a_node("n0"), a_node("n1", "8"), a_node("n2", is_open=False)]
    held = [a_pod("other", "2500m", "n0", "others", "Running")]
    picture = ClusterPicture.of(nodes, held)

    assert picture.free() == {"n0": {"core": 1, "memory": 8}, "n1": {"core": 8, "memory": 8}}
    assert picture.match([{"cpu": 2000}] * 4) == ["n1"] * 4
    assert picture.match([{"cpu": 2000}] * 5) is None
    assert picture.match([{"cpu": 1000}], frozenset({"n0"})) == ["n0"]
    assert picture.match([{"nvidia.com/gpu": 1}]) is None
