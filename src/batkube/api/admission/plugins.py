"""The plugins of admission, in their order.

As in the real server there are two rounds. `Admission.admit` comes before strategies and validation and may change the
object; `Admission.review` comes after, when the object is whole, and only judges; what it charges to quotas is to be
written before the object itself. The plugins are those that kube-apiserver has on by default, in its order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from batkube.api.admission import (
    classes,
    default_tolerations,
    limit_ranges,
    namespaces,
    pod_security,
    priorities,
    runtime_classes,
)
from batkube.api.admission.attempts import Attempt
from batkube.api.admission.mutating_policies import MutatingPolicies
from batkube.api.admission.quotas import Charges, charge_quotas
from batkube.api.admission.reinvocations import ChangeRounds
from batkube.api.admission.service_accounts import ServiceAccounts
from batkube.api.admission.validating_policies import ValidatingPolicies
from batkube.api.admission.webhooks import Webhooks
from batkube.api.requests.users import User
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject, Store
from batkube.kernel.instants import Instant

Plugin = Callable[[Attempt], None]

#: Plugins that may change an object, by kind and sub-resource.
_MUTATING: Mapping[str, tuple[Plugin, ...]] = {
    "ingresses.networking.k8s.io": (classes.choose_ingress_class,),
    "nodes": (classes.taint_node,),
    "persistentvolumeclaims": (classes.choose_storage_class, classes.protect),
    "persistentvolumes": (classes.protect,),
    "pods": (
        limit_ranges.fill_limits,
        priorities.set_priority,
        default_tolerations.add_tolerations,
        runtime_classes.apply_runtime_class,
    ),
    "pods/resize": (limit_ranges.fill_limits,),
    "volumeattributesclasses.storage.k8s.io": (classes.protect,),
}

#: Plugins that judge an object, by kind and sub-resource.
_JUDGING: Mapping[str, tuple[Plugin, ...]] = {
    "namespaces": (pod_security.check_labels,),
    "persistentvolumeclaims": (limit_ranges.check_claim_limits, classes.check_resize),
    "pods": (limit_ranges.check_pod_limits, pod_security.check_pod, runtime_classes.check_overhead),
    "pods/ephemeralcontainers": (pod_security.check_pod,),
    "pods/resize": (limit_ranges.check_pod_limits,),
    "priorityclasses.scheduling.k8s.io": (priorities.check_default_class,),
    **dict.fromkeys(
        (
            "cronjobs.batch",
            "daemonsets.apps",
            "deployments.apps",
            "jobs.batch",
            "podtemplates",
            "replicasets.apps",
            "replicationcontrollers",
            "statefulsets.apps",
        ),
        (pod_security.check_template,),
    ),
}


class Admission:
    """The admission plugins of one server."""

    def __init__(
        self,
        store: Store,
        service_accounts: random.Random | None = None,
        policies: ValidatingPolicies | None = None,
        mutating_policies: MutatingPolicies | None = None,
        webhooks: Webhooks | None = None,
    ) -> None:
        """`service_accounts` gives pods an account and its token, drawing volume names from it; None does not."""
        self._store = store
        self._policies = policies
        self._mutating_policies = mutating_policies
        self._webhooks = webhooks
        self._accounts = None if service_accounts is None else ServiceAccounts(service_accounts)

    def attempt(
        self,
        resource: Resource,
        value: dict[str, Any],
        old: KubeObject | None,
        now: Instant,
        *,
        namespace: str,
        name: str,
        subresource: str = "",
        warnings: list[str] | None = None,
        user: User | None = None,
        dry_run: bool = False,
        options: dict[str, Any] | None = None,
        deletes: bool = False,
    ) -> Attempt:
        """Return the attempt to write `value`; `old` is the live object, None for a creation."""
        own_warnings = [] if warnings is None else warnings
        where = resource, namespace, name, subresource
        return Attempt(*where, value, old, self._store, now, own_warnings, user, dry_run, options or {}, deletes)

    def admit(self, attempt: Attempt) -> None:
        """Let the plugins change the object, or refuse it with a Failure."""
        namespaces.check_namespace(attempt)
        self._fill(attempt)
        if not self._users_change_objects:
            return
        by_policies, by_webhooks = ChangeRounds(), ChangeRounds()
        self._change(attempt, by_policies, by_webhooks)
        if by_policies.has_changed or by_webhooks.has_changed:
            by_policies.round = by_webhooks.round = 1
            self._fill(attempt)
            self._change(attempt, by_policies, by_webhooks)

    @property
    def _users_change_objects(self) -> bool:
        """Whether there is any policy or webhook that may change objects; most writes pay no more than this."""
        policies = self._mutating_policies
        return (policies is not None and policies.are_there) or self.asks_webhooks

    def judges_each(self, namespace: str) -> bool:
        """Return whether pods of a namespace that differ in their names alone may be admitted differently.

        That is so where they are charged to a quota, judged by a policy or webhook, or given a token each.
        """
        has_quotas = any(True for _ in self._store.in_namespace("resourcequotas", namespace))
        return has_quotas or self._accounts is not None or self._users_change_objects or self.judges_deletions

    def _change(self, attempt: Attempt, by_policies: ChangeRounds, by_webhooks: ChangeRounds) -> None:
        """Let policies and webhooks of users change the object, those whose turn it is."""
        if self._mutating_policies is not None:
            self._mutating_policies.mutate(attempt, by_policies)
        if self._webhooks is not None:
            self._webhooks.mutate(attempt, by_webhooks)

    def _fill(self, attempt: Attempt) -> None:
        """Let our own plugins change the object."""
        place = _place(attempt)
        if self._accounts is not None and place == "pods":
            self._accounts.admit(attempt)
        for plugin in _MUTATING.get(place, ()):
            plugin(attempt)

    def review(self, attempt: Attempt) -> Charges:
        """Let the plugins judge the whole object; return the quotas to write before it, unless it is a dry run."""
        for plugin in _JUDGING.get(_place(attempt), ()):
            plugin(attempt)
        self._judge(attempt)
        return charge_quotas(attempt)

    @property
    def judges_deletions(self) -> bool:
        """Whether anybody has a say in what is deleted."""
        return self.asks_webhooks or (self._policies is not None and self._policies.are_there)

    @property
    def asks_webhooks(self) -> bool:
        """Whether there is any webhook."""
        return self._webhooks is not None and self._webhooks.are_there

    def review_deletion(self, attempt: Attempt) -> None:
        """Let webhooks and policies refuse a deletion; the former may not change anything, but are asked."""
        if self._webhooks is not None:
            self._webhooks.mutate(attempt, ChangeRounds())
        self._judge(attempt)

    def _judge(self, attempt: Attempt) -> None:
        if self._policies is not None:
            self._policies.judge(attempt)
        if self._webhooks is not None:
            self._webhooks.judge(attempt)


def _place(attempt: Attempt) -> str:
    """Return the kind and sub-resource that is written: `pods`, `pods/resize`."""
    place = attempt.resource.storage
    return f"{place}/{attempt.subresource}" if attempt.subresource else place
