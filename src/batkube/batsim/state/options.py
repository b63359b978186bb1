"""The options of a simulation that affect what schedulers receive."""

from __future__ import annotations

from dataclasses import dataclass

from batkube.batsim.protocol.messages import JsonObject


@dataclass(frozen=True, slots=True)
class Options:
    """Batsim's options by meaning, with Batsim's defaults."""

    allows_compute_sharing: bool = False
    allows_storage_sharing: bool = True
    forwards_profiles: bool = False
    has_dynamic_jobs: bool = False
    acknowledges_dynamic_jobs: bool = False
    keeps_profiles: bool = False
    forwards_unknown_events: bool = False
    scheduler_configuration: str = ""
    has_energy: bool = False
    #: The maximum of simultaneous jobs per workflow; 0 for no limit.
    workflow_jobs_max: int = 0
    ignores_beyond_workflow: bool = False

    def to_config(self) -> JsonObject:
        """Return the `config` of SIMULATION_BEGINS (Batsim: docs/protocol.rst); Redis is off and has its defaults."""
        return {
            "redis-enabled": False,
            "redis-hostname": "127.0.0.1",
            "redis-port": 6379,
            "redis-prefix": "default",
            "profiles-forwarded-on-submission": self.forwards_profiles,
            "dynamic-jobs-enabled": self.has_dynamic_jobs,
            "dynamic-jobs-acknowledged": self.acknowledges_dynamic_jobs,
            "profile-reuse-enabled": self.has_dynamic_jobs and self.keeps_profiles,
            "sched-config": self.scheduler_configuration,
            "forward-unknown-events": self.forwards_unknown_events,
        }
