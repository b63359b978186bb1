"""`--requests` replaces the requests of a workload."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batkube.emulation.settings import apply_mappings, parse_request_mapping
from batkube.kernel.errors import InputError

JOB = (("cpu", 1500), ("memory", 1024), ("gpu", 2))


@pytest.mark.parametrize(
    ("texts", "requests"),
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
def test_mappings_change_the_requests_of_pods(texts: list[str], requests: dict[str, int]) -> None:
    assert dict(apply_mappings(JOB, [parse_request_mapping(text) for text in texts])) == requests


@pytest.mark.parametrize("text", ["cpu", "=1", "cpu=x", "cpu=x0", "cpu=x-1", "cpu=xinf", "cpu=1zz", "cpu=-1", "CPU=1"])
def test_an_invalid_mapping_is_rejected_with_the_syntax_as_remedy(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_request_mapping(text)

    assert text in str(caught.value)
    assert caught.value.remedy is not None
    assert "RESOURCE=QUANTITY" in caught.value.remedy


@given(requests=st.integers(1, 2**62), factor=st.decimals("0.001", "1000", places=3))
def test_a_scaled_request_is_rounded_up(requests: int, factor: Decimal) -> None:
    ((_, scaled),) = apply_mappings((("cpu", requests),), [parse_request_mapping(f"cpu=x{factor}")])

    assert scaled - 1 < requests * factor <= scaled
