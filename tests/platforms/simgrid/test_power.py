"""The power of hosts in SimGrid platforms."""

from __future__ import annotations

import pytest
from tests.platforms.simgrid.networks import network

from batkube.kernel.errors import InputError
from batkube.platforms.simgrid.power import power_of


def test_the_power_depends_on_the_load_and_the_power_state() -> None:
    value = "30:40:100, 9:9"
    prop = f'<prop id="wattage_per_state" value="{value}"/><prop id="sleep_pstates" value="1:1:1"/>'
    net = network(f'<zone id="z" routing="Full"><host id="a" speed="1Gf,1f">{prop}</host></zone>')
    power = power_of("p.xml", net.hosts["a"])

    assert power is not None
    assert [power.draws[0].at(load) for load in (0, 0.5, 1)] == [30, 70, 100]
    assert [power.can_compute_in(pstate) for pstate in (0, 1, 2)] == [True, False, False]


@pytest.mark.parametrize("value", ["1", "1:2:3:4", "a:b", "1:2,3:4"])
def test_invalid_power_values_are_rejected(value: str) -> None:
    prop = f'<prop id="wattage_per_state" value="{value}"/>'
    net = network(f'<zone id="z" routing="Full"><host id="a" speed="1Gf">{prop}</host></zone>')

    with pytest.raises(InputError, match="wattage_per_state"):
        power_of("p.xml", net.hosts["a"])
