"""The options of a simulation in the configuration that schedulers receive."""

from __future__ import annotations

import pytest

from batkube.batsim.state.options import Options


def test_the_defaults_are_those_of_batsim() -> None:
    config = Options().to_config()

    assert {key for key, value in config.items() if value is True} == set()
    assert (config["redis-hostname"], config["redis-port"], config["sched-config"]) == ("127.0.0.1", 6379, "")


@pytest.mark.parametrize(
    ("has_dynamic_jobs", "keeps_profiles", "is_reused"),
    [(True, True, True), (False, True, False), (True, False, False)],
)
def test_profiles_are_reused_only_by_dynamic_jobs(
    has_dynamic_jobs: bool, keeps_profiles: bool, is_reused: bool
) -> None:
    options = Options(has_dynamic_jobs=has_dynamic_jobs, keeps_profiles=keeps_profiles)

    assert options.to_config()["profile-reuse-enabled"] is is_reused
