"""Policies by name: `fcfs`, or `./mine.py:MyPolicy` for one in a file of the user's own."""

from __future__ import annotations

import copy
import difflib
import inspect
from collections.abc import Mapping
from pathlib import Path

from batkube.kernel.errors import InputError
from batkube.policies.conservative import Conservative
from batkube.policies.easy import Easy
from batkube.policies.fcfs import Fcfs
from batkube.policies.fluxion import Fluxion
from batkube.policies.interface import Policy
from batkube.policies.priority import Priority
from batkube.policies.registry.arguments import construct_policy
from batkube.policies.registry.files import check_file, policy_from_file
from batkube.policies.scan import BestFit, FirstFit, RandomPolicy, WorstFit
from batkube.policies.sjf import Sjf
from batkube.policies.sleep import SleepingFcfs

_POLICIES: dict[str, type[Policy]] = {
    "fcfs": Fcfs,
    "sjf": Sjf,
    "easy": Easy,
    "conservative": Conservative,
    "first-fit": FirstFit,
    "best-fit": BestFit,
    "worst-fit": WorstFit,
    "random": RandomPolicy,
    "priority": Priority,
    "fluxion": Fluxion,
    "sleep": SleepingFcfs,
}
#: Other names under which people know them.
_ALIASES = {"pack": "best-fit", "spread": "worst-fit", "fifo": "fcfs"}


def policy_names() -> list[tuple[str, str]]:
    """Return the name of each built-in policy and a line that says what it does, aliases last."""
    described = [(name, _first_sentence(policy)) for name, policy in _POLICIES.items()]
    return described + [(alias, f"another name for {name}") for alias, name in _ALIASES.items()]


def load_policy(spec: str, arguments: Mapping[str, str]) -> Policy:
    """Return the policy that `spec` names, constructed with `arguments` (the text of `--scheduler-arg name=value`).

    `spec` is a built-in name, or a path and a class, `./mine.py:MyPolicy`, relative to the current folder.
    Raises InputError when there is no such policy or it does not take these arguments.
    """
    path, class_name = _file_and_class(spec)
    return make_policy(policy_from_file(Path(path), class_name) if path else _built_in(spec), spec, arguments)


def make_policy(policy: Policy | type[Policy], spec: str, arguments: Mapping[str, str]) -> Policy:
    """Return a policy for one run: of a class, constructed with `arguments`, or a copy of one that is made already.

    A copy, so that what one run leaves in it is not there in the next. Raises InputError.
    """
    source = f"policy {spec!r}"
    if isinstance(policy, type):
        made = construct_policy(policy, spec, arguments)
    elif arguments:
        problem = "is made already, and takes no arguments any more"
        raise InputError(source, at="scheduler_args", problem=problem, remedy="give its class, or leave them out")
    else:
        made = copy.deepcopy(policy)
    if type(made).decide is Policy.decide:
        raise InputError(source, problem="has no method decide", remedy="write `def decide(self, view): yield …`")
    return made


def check_policy(spec: str, arguments: Mapping[str, str]) -> None:
    """Raise InputError if `load_policy` would, as far as that can be known without running a file of the user's."""
    path, _ = _file_and_class(spec)
    if path:
        check_file(Path(path))
    else:
        load_policy(spec, arguments)


def _file_and_class(spec: str) -> tuple[str, str]:
    """Return the file that `spec` names and the class in it; no file for a built-in policy."""
    path, _, class_name = spec.rpartition(":")
    return (spec, "") if not path and spec.endswith(".py") else (path, class_name)


def _built_in(name: str) -> type[Policy]:
    policy = _POLICIES.get(_ALIASES.get(name, name))
    if policy is not None:
        return policy
    known = [*_POLICIES, *_ALIASES]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise InputError(
        f"policy {name!r}",
        problem="there is no policy of this name",
        remedy=f"{hint}The built-in ones are {', '.join(known)}; one of your own is ./your_file.py:YourPolicy",
    )


def _first_sentence(policy: type[Policy]) -> str:
    return (inspect.getdoc(policy) or "").partition("\n")[0]
