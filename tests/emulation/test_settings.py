"""What `--requests` means."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.emulation.settings import apply_mappings, parse_request_mapping
from batkube.kernel.errors import InputError

JOB = (("cpu", 1500), ("memory", 1024), ("gpu", 2))


@pytest.mark.parametrize(
    ("texts", "asked"),
    [
        ([], {"cpu": 1500, "memory": 1024, "gpu": 2}),
        (["cpu=500m"], {"cpu": 500, "memory": 1024, "gpu": 2}),
        (["cpu=x0.5"], {"cpu": 750, "memory": 1024, "gpu": 2}),
        (["gpu=nvidia.com/gpu"], {"cpu": 1500, "memory": 1024, "nvidia.com/gpu": 2}),
        (["memory=", "gpu="], {"cpu": 1500}),
        (["cpu=x2", "cpu=x2"], {"cpu": 6000, "memory": 1024, "gpu": 2}),
        (["ephemeral-storage=1Gi"], {"cpu": 1500, "memory": 1024, "gpu": 2, "ephemeral-storage": 2**30}),
        (["pods=x2"], {"cpu": 1500, "memory": 1024, "gpu": 2}),
    ],
)
def test_mappings_change_what_pods_ask_for(texts: list[str], asked: dict[str, int]) -> None:
    assert dict(apply_mappings(JOB, [parse_request_mapping(text) for text in texts])) == asked


@pytest.mark.parametrize("text", ["cpu", "=1", "cpu=x", "cpu=x0", "cpu=x-1", "cpu=xinf", "cpu=1zz", "cpu=-1", "CPU=1"])
def test_what_is_no_mapping_is_refused_with_the_way_to_write_one(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_request_mapping(text)

    assert text in str(caught.value)
    assert caught.value.remedy is not None
    assert "RESOURCE=QUANTITY" in caught.value.remedy


@given(asked=st.integers(1, 2**62), factor=st.decimals("0.001", "1000", places=3))
def test_a_factor_rounds_up_so_that_a_little_never_becomes_nothing(asked: int, factor: Decimal) -> None:
    ((_, scaled),) = apply_mappings((("cpu", asked),), [parse_request_mapping(f"cpu=x{factor}")])

    assert scaled - 1 < asked * factor <= scaled
