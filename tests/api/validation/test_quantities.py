"""Resource quantities."""

from __future__ import annotations

from batkube.api.validation.quantities import container_resource, resource_quantity


def test_extended_resources_must_be_integers() -> None:
    assert resource_quantity("example.com/gpu", "1500m") == ("must be an integer",)
    assert resource_quantity("cpu", "1500m") == ()
    assert container_resource("pods") == ("must be a standard resource for containers",)
