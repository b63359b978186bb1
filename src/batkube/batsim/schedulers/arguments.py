"""`--scheduler batsim:…` with its `--scheduler-arg`s: what of Batsim's options a run takes."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.batsim.schedulers.batsim_scheduler import BatsimScheduler
from batkube.batsim.schedulers.connection import is_endpoint, scheduler_command
from batkube.batsim.state.options import Options
from batkube.kernel.errors import InputError

#: Arguments that are on or off, by the option of `batkube batsim` that they are.
_SWITCHES = {
    "enable-compute-sharing": "allows_compute_sharing",
    "forward-profiles-on-submission": "forwards_profiles",
    "enable-dynamic-jobs": "has_dynamic_jobs",
    "acknowledge-dynamic-jobs": "acknowledges_dynamic_jobs",
    "enable-profile-reuse": "keeps_profiles",
}
_CONFIGURATION = "sched-cfg"
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def batsim_scheduler(spec: str, arguments: Mapping[str, str]) -> BatsimScheduler:
    """Return the policy that asks the scheduler `spec`. Raises InputError."""
    if not is_endpoint(spec):
        scheduler_command(spec, "")
    switches: dict[str, bool] = {}
    for name, value in arguments.items():
        if name == _CONFIGURATION:
            continue
        if name not in _SWITCHES:
            known = ", ".join([*_SWITCHES, _CONFIGURATION])
            raise InputError(f"--scheduler-arg {name}", problem="is none that a run takes", remedy=f"one of {known}")
        if value.lower() not in _BOOLEANS:
            raise InputError(f"--scheduler-arg {name}", problem=f"{value!r} is neither true nor false")
        switches[_SWITCHES[name]] = _BOOLEANS[value.lower()]
    options = Options(**switches, scheduler_configuration=arguments.get(_CONFIGURATION, ""))
    return BatsimScheduler(spec, options)
