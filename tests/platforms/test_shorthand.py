"""Platform shorthands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, GPU, MEMORY, PODS
from batkube.platforms.model import DEFAULT_PODS
from batkube.platforms.reader import read_platform
from batkube.platforms.summary import describe


def test_a_count_and_a_cpu_are_machines_with_that_cpu() -> None:
    platform = read_platform("16x1")

    assert [machine.name for machine in platform.machines] == [f"node-{i}" for i in range(16)]
    assert [machine.id for machine in platform.machines] == list(range(16))
    assert all(machine.capacity == {CPU: 1000, PODS: DEFAULT_PODS} for machine in platform.machines)


@pytest.mark.parametrize("spec", ["2x4,16Gi,2", "2 x 4,16Gi,2", " 2 X 4 , 16Gi , 2 ", "2×4000m,16384Mi,2"])
def test_memory_and_gpus_follow_the_cpu_whatever_the_spacing(spec: str) -> None:
    platform = read_platform(spec)

    assert len(platform.machines) == 2
    assert platform.machines[1].capacity == {CPU: 4000, MEMORY: 16 * 1024**3, GPU: 2, PODS: DEFAULT_PODS}


def test_memory_may_be_empty_before_gpus() -> None:
    assert read_platform("1x4,,2").machines[0].capacity == {CPU: 4000, GPU: 2, PODS: DEFAULT_PODS}


def test_groups_are_joined_by_plus_and_numbered_consecutively() -> None:
    platform = read_platform("16x4 + 2x8,64Gi,4")

    assert len(platform.machines) == 18
    assert platform.machines[16].name == "node-16"
    assert platform.machines[16].capacity[GPU] == 4
    assert describe(platform) == "18 machines: 16 × 4 cpu + 2 × 8 cpu, 64Gi, 4 gpu"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("0x1", "no machine"),
        ("16x0", "has no cpu"),
        ("16x-1", "negative"),
        ("16x", "not a group"),
        ("16x4+", "not a group"),
        ("16x4,1Gi,1,1", "not a group"),
        ("16xlots", "not a quantity"),
        ("16x4,2", "2 bytes"),
        ("999999999x1", "more than"),
        ("sixteen", "not a platform"),
        ("", "not a platform"),
    ],
)
def test_an_invalid_shorthand_is_rejected_with_a_remedy(spec: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as error:
        read_platform(spec)

    assert error.value.remedy


def test_the_remedy_for_a_tiny_memory_is_to_write_it_as_gpus() -> None:
    with pytest.raises(InputError) as error:
        read_platform("16x4,2")

    assert error.value.remedy == "write 2Gi if it is memory, or 16x4,,2 if it is GPUs"


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 256)), min_size=1, max_size=5))
def test_a_platform_has_the_machines_and_cores_of_its_groups(groups: list[tuple[int, int]]) -> None:
    platform = read_platform(" + ".join(f"{count}x{cpu}" for count, cpu in groups))

    assert len(platform.machines) == sum(count for count, _ in groups)
    assert sum(machine.cpu_milli for machine in platform.machines) == sum(1000 * count * cpu for count, cpu in groups)
    assert [machine.id for machine in platform.machines] == list(range(len(platform.machines)))
