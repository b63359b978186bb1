"""Size limits of values, by their schema."""

from __future__ import annotations

from batkube.api.custom.schemas.size_limits import REQUEST_BYTES, cardinality_max, size_limits
from batkube.api.custom.schemas.structural import parse_structural


def test_the_request_size_bounds_values_without_schema_limits() -> None:
    text = size_limits(parse_structural({"type": "string"}))
    numbers = size_limits(parse_structural({"type": "array", "items": {"type": "integer"}}))

    assert text is not None
    assert numbers is not None
    assert text.elements_max == REQUEST_BYTES - 2
    assert numbers.elements_max == (REQUEST_BYTES - 2) // 2
    assert cardinality_max(text) == REQUEST_BYTES // 3
