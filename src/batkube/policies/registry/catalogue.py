"""Policies by name: `fcfs`, or `./mine.py:MyPolicy` for a class in a file of the user."""

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
#: Other common names of policies.
_ALIASES = {"pack": "best-fit", "spread": "worst-fit", "fifo": "fcfs"}


def policy_names() -> list[tuple[str, str]]:
    """Return the name of each built-in policy with a one-line description, aliases last."""
    described = [(name, _first_sentence(policy)) for name, policy in _POLICIES.items()]
    return described + [(alias, f"another name for {name}") for alias, name in _ALIASES.items()]


def load_policy(spec: str, arguments: Mapping[str, str]) -> Policy:
    """Return the policy that `spec` names, constructed with `arguments` (`--scheduler-arg NAME=TEXT`).

    `spec` is a built-in name, or a path and a class, `./mine.py:MyPolicy`, relative to the current
    folder. Raises InputError if the policy does not exist or does not accept the arguments.
    """
    path, class_name = _file_and_class(spec)
    return make_policy(policy_from_file(Path(path), class_name) if path else _built_in(spec), spec, arguments)


def make_policy(policy: Policy | type[Policy], spec: str, arguments: Mapping[str, str]) -> Policy:
    """Return a policy for one run: an instance of a class, or a copy of an instance.

    A copy, because a run may change its state. Raises InputError.
    """
    source = f"policy {spec!r}"
    if isinstance(policy, type):
        instance = construct_policy(policy, spec, arguments)
    elif arguments:
        problem = "the policy is an instance, which takes no arguments"
        raise InputError(source, at="scheduler_args", problem=problem, remedy="pass its class, or no arguments")
    else:
        instance = copy.deepcopy(policy)
    if type(instance).decide is Policy.decide:
        raise InputError(source, problem="has no method decide", remedy="write `def decide(self, view): yield …`")
    return instance


def check_policy(spec: str, arguments: Mapping[str, str]) -> None:
    """Raise InputError if `load_policy` would, as far as that is known without executing a user's file."""
    path, _ = _file_and_class(spec)
    if path:
        check_file(Path(path))
    else:
        load_policy(spec, arguments)


def _file_and_class(spec: str) -> tuple[str, str]:
    """Return the file and the class that `spec` names; the file is empty for a built-in policy."""
    path, _, class_name = spec.rpartition(":")
    return (spec, "") if not path and spec.endswith(".py") else (path, class_name)


def _built_in(name: str) -> type[Policy]:
    policy = _POLICIES.get(_ALIASES.get(name, name))
    if policy is not None:
        return policy
    names = [*_POLICIES, *_ALIASES]
    closest = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"did you mean {closest[0]}? " if closest else ""
    raise InputError(
        f"policy {name!r}",
        problem="is not a built-in policy",
        remedy=f"{hint}use one of {', '.join(names)}, or a class in a file: ./your_file.py:YourPolicy",
    )


def _first_sentence(policy: type[Policy]) -> str:
    return (inspect.getdoc(policy) or "").partition("\n")[0]
