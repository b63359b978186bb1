"""Policies of an experiment that are Python objects: classes or instances.

A scenario refers to its policy by name, and runs are executed in other processes, possibly on other machines. Each
object therefore gets a name with a hash of its code and attributes, which becomes part of the run's name, and is sent
pickled. With `cloudpickle` it is pickled by value; without, only policies that other processes can import can be sent.
"""

from __future__ import annotations

import hashlib
import inspect
import pickle
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeGuard

from batkube.experiments.plan.runs import Plan
from batkube.kernel.errors import InputError
from batkube.policies.interface import Policy
from batkube.policies.registry.catalogue import load_policy, make_policy
from batkube.scenarios.scenario import POLICY_PREFIX
from batkube.simulation.preparation.inputs import PolicyObject

_HASH_LENGTH = 8


class PolicyObjects:
    """The policy objects of an experiment, by the name that replaces them after `policy:`."""

    def __init__(self) -> None:
        self._objects: dict[str, PolicyObject] = {}
        self._pickled: dict[str, bytes] = {}

    def replace_by_names(self, value: object) -> object:
        """Return a part of an experiment with policy objects replaced by names. Raises InputError."""
        if isinstance(value, Mapping):
            return {key: self.replace_by_names(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.replace_by_names(entry) for entry in value]
        if not _is_policy(value):
            return value
        policy_class = value if isinstance(value, type) else type(value)
        name = f"{policy_class.__module__}.{policy_class.__qualname__}@{_digest(value, policy_class)}"
        self._objects[name], self._pickled[name] = value, _pickle(name, value)
        return f"{POLICY_PREFIX}{name}"

    def check(self, name: str, arguments: Mapping[str, str]) -> object:
        """Check that a policy, one of these or any other, can be constructed. Raises InputError."""
        policy = self._objects.get(name)
        return load_policy(name, arguments) if policy is None else make_policy(policy, name, arguments)

    def attach_to(self, plan: Plan) -> Plan:
        """Return the plan with the pickled policy attached to each run."""
        names = [run.scenario.scheduler.removeprefix(POLICY_PREFIX) for run in plan.runs]
        policies = [self._pickled.get(name, b"") for name in names]
        return replace(
            plan, runs=[replace(run, policy=policy) for run, policy in zip(plan.runs, policies, strict=True)]
        )


def _is_policy(value: object) -> TypeGuard[PolicyObject]:
    return issubclass(value, Policy) if isinstance(value, type) else isinstance(value, Policy)


def _digest(policy: PolicyObject, policy_class: type[Policy]) -> str:
    """Return a hash of a policy's code, and of an instance's attributes."""
    try:
        code = inspect.getsource(policy_class)
    except (OSError, TypeError):
        code = policy_class.__qualname__
    attributes = "" if isinstance(policy, type) else repr(sorted(vars(policy).items()))
    return hashlib.sha256(f"{code}\0{attributes}".encode()).hexdigest()[:_HASH_LENGTH]


def _pickle(name: str, policy: PolicyObject) -> bytes:
    policy_class = policy if isinstance(policy, type) else type(policy)
    module = sys.modules.get(policy_class.__module__)
    try:
        import cloudpickle
    except ImportError:
        if policy_class.__module__ == "__main__" or module is None:
            problem = "is defined where other processes cannot import it"
            remedy = "pip install cloudpickle; or put the class into a file: policy:FILE.py:CLASS"
            raise InputError(f"policy {name}", problem=problem, remedy=remedy) from None
        return pickle.dumps(policy)
    is_ours = policy_class.__module__.partition(".")[0] == __name__.partition(".")[0]
    by_value = module is not None and policy_class.__module__ != "__main__" and not is_ours
    if by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(policy))
    except (pickle.PicklingError, TypeError) as error:
        remedy = "remove attributes that belong to this process: open files, locks, connections"
        raise InputError(
            f"policy {name}", problem=f"cannot be sent to other processes: {error}", remedy=remedy
        ) from None
    finally:
        if by_value:
            cloudpickle.unregister_pickle_by_value(module)
