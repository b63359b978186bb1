"""Measure the cost of keeping KubeFlux's cache up to date: rebuilt before every round, or change by change."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from batkube.cluster.store import Key, KubeObject
from batkube.kubeflux.scheduler_cache import SchedulerCache
from recording import measured_commit, record

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "kubeflux.md"
CORES, PODS_PER_NODE = 16, 8
COLUMNS = (
    "nodes",
    "pods",
    "rebuild and match ms",
    "delta and match ms",
    "ratio",
    "rebuild accounts ms",
    "delta accounts µs",
)


def cluster(count: int) -> tuple[list[KubeObject], list[KubeObject]]:
    """Return half full nodes and their pods."""
    nodes, pods = [], []
    for number in range(count):
        allocatable = {"cpu": str(CORES), "memory": "32Gi", "pods": "110"}
        nodes.append({"metadata": {"name": f"n{number}"}, "spec": {}, "status": {"allocatable": allocatable}})
        pods += [a_pod(f"p{number}-{rank}", f"n{number}") for rank in range(PODS_PER_NODE)]
    return nodes, pods


def a_pod(name: str, node: str) -> KubeObject:
    """Return a pod of one core."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"nodeName": node, "containers": [container]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": {"phase": "Running"}}


def measured(count: int, seconds: float) -> str:
    """Measure the end of a pod, the arrival of another and a match; return the row of the table."""
    nodes, pods = cluster(count)
    demand = [{"cpu": 1000}]
    began_s, rounds = time.process_time(), 0
    accounts_s = 0.0
    while rounds < 2 or time.process_time() - began_s < seconds:
        before_s = time.process_time()
        cache = SchedulerCache.build(nodes, pods)
        accounts_s += time.process_time() - before_s
        assert cache.match(demand)
        rounds += 1
    rebuild_s, accounts_s = (time.process_time() - began_s) / rounds, accounts_s / rounds
    began_s, changes = time.process_time(), 0
    delta_s = 0.0
    while changes < 100 or time.process_time() - began_s < seconds:
        number = changes * 7919 % count
        key = Key(f"default/p{number}-{changes % PODS_PER_NODE}")
        before_s = time.process_time()
        cache.remove_pod(key)
        cache.add_pod(key, f"n{number}", {"cpu": 1000, "memory": 1 << 30, "pods": 1})
        cache.remove_pod(key)
        delta_s += time.process_time() - before_s
        assert cache.match(demand)
        cache.add_pod(key, f"n{number}", {"cpu": 1000, "memory": 1 << 30, "pods": 1})
        changes += 1
    each_s, delta_s = (time.process_time() - began_s) / changes, delta_s / changes
    cells = [f"{count:,}", f"{len(pods):,}", f"{1000 * rebuild_s:.1f}", f"{1000 * each_s:.3f}"]
    cells += [f"{rebuild_s / each_s:,.0f}", f"{1000 * accounts_s:.1f}", f"{1e6 * delta_s:.1f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, print the table, and append it to the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 100, 1_000, 10_000], help="sizes of the cluster")
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds for each part (default 2)")
    parser.add_argument("--no-record", action="store_true", help=f"do not append to {RESULTS.relative_to(HERE.parent)}")
    options = parser.parse_args()
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    print("\n".join(lines), flush=True)
    for count in options.nodes:
        lines.append(measured(count, options.seconds))
        print(lines[-1], flush=True)
    if not options.no_record:
        record(RESULTS, measured_commit(), lines)


if __name__ == "__main__":
    main()
