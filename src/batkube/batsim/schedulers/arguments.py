"""`--scheduler batsim:…` with its `--scheduler-arg`s: the options of Batsim that a run supports."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.batsim.schedulers.batsim_scheduler import BatsimScheduler
from batkube.batsim.schedulers.connection import is_endpoint, scheduler_command
from batkube.batsim.state.options import Options
from batkube.kernel.errors import InputError

#: The boolean arguments, named after the options of `batkube batsim`, and their field in `Options`.
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
    """Return the policy that represents the scheduler `spec`. Raise InputError."""
    if not is_endpoint(spec):
        scheduler_command(spec, "")
    switches: dict[str, bool] = {}
    for name, value in arguments.items():
        if name == _CONFIGURATION:
            continue
        if name not in _SWITCHES:
            names = ", ".join([*_SWITCHES, _CONFIGURATION])
            raise InputError(
                f"--scheduler-arg {name}",
                problem="unknown argument of a batsim: scheduler",
                remedy=f"use one of {names}",
            )
        if value.lower() not in _BOOLEANS:
            raise InputError(
                f"--scheduler-arg {name}", problem=f"{value!r} is not a boolean", remedy="write true or false"
            )
        switches[_SWITCHES[name]] = _BOOLEANS[value.lower()]
    options = Options(**switches, scheduler_configuration=arguments.get(_CONFIGURATION, ""))
    return BatsimScheduler(spec, options)
