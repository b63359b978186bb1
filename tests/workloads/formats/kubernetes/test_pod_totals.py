"""The total requests of a pod are the same in whole units (nodes) and in quantities (quotas)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from batkube.api.groups.core.pods.resource_totals import total_pod_resources
from batkube.kernel.quantities import parse_quantity
from batkube.workloads.fields import Place
from batkube.workloads.formats.kubernetes.pod_requests import read_pod_requests
from batkube.workloads.formats.kubernetes.pod_totals import sum_of_containers

PLACE = Place(Path("pod")) / "spec"
AMOUNTS = st.dictionaries(
    st.sampled_from(["memory", "example.com/gpu", "hugepages-2Mi"]), st.integers(0, 9).map(str), max_size=3
)
CONTAINERS = st.builds(lambda amounts: {"resources": {"requests": amounts}}, AMOUNTS)
INIT_CONTAINERS = st.builds(
    lambda container, sidecar: {**container, **({"restartPolicy": "Always"} if sidecar else {})},
    CONTAINERS,
    st.booleans(),
)
SPECS = st.fixed_dictionaries(
    {
        "containers": st.lists(CONTAINERS, min_size=1, max_size=3),
        "initContainers": st.lists(INIT_CONTAINERS, max_size=4),
        "overhead": AMOUNTS,
        "resources": st.builds(lambda amounts: {"requests": amounts}, AMOUNTS),
    }
)


def test_a_sidecar_adds_to_later_init_containers_and_to_the_containers() -> None:
    assert sum_of_containers([{"cpu": 1}], [({"cpu": 4}, False), ({"cpu": 2}, True), ({"cpu": 3}, False)]) == {"cpu": 5}


@given(SPECS)
def test_nodes_and_quotas_count_the_same_requests_of_a_pod(spec: dict[str, Any]) -> None:
    whole = dict(read_pod_requests(PLACE, spec))

    assert {name: parse_quantity(count) for name, count in whole.items()} == total_pod_resources(spec, "requests")
