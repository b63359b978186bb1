"""The plugins of admission, in their order.

As in the real server there are two rounds. `AdmissionChain.admit` comes before strategies and validation and may
change the
object; `AdmissionChain.review` comes after, when the object is whole, and only judges; what it charges to quotas is to
be
written before the object itself. The plugins are those that kube-apiserver has on by default, in its order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from batkube.api.admission.built_in import (
    default_tolerations,
    limit_ranges,
    namespace_lifecycle,
    pod_security,
    priorities,
    resource_defaults,
    runtime_classes,
)
from batkube.api.admission.built_in.quotas import QuotaCharges, charge_quotas
from batkube.api.admission.built_in.service_accounts import ServiceAccountPlugin
from batkube.api.admission.dynamic.mutating_policies import MutatingPolicies
from batkube.api.admission.dynamic.reinvocation import ReinvocationContext
from batkube.api.admission.dynamic.validating_policies import ValidatingPolicies
from batkube.api.admission.dynamic.webhooks import AdmissionWebhooks
from batkube.api.admission.request import AdmissionRequest
from batkube.api.requests.users import User
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject, Store
from batkube.kernel.instants import Instant

Plugin = Callable[[AdmissionRequest], None]

#: Plugins that may change an object, by kind and sub-resource.
_MUTATING: Mapping[str, tuple[Plugin, ...]] = {
    "ingresses.networking.k8s.io": (resource_defaults.set_default_ingress_class,),
    "nodes": (resource_defaults.taint_new_node,),
    "persistentvolumeclaims": (resource_defaults.set_default_storage_class, resource_defaults.add_protection_finalizer),
    "persistentvolumes": (resource_defaults.add_protection_finalizer,),
    "pods": (
        limit_ranges.apply_default_limits,
        priorities.set_priority,
        default_tolerations.add_default_tolerations,
        runtime_classes.apply_runtime_class,
    ),
    "pods/resize": (limit_ranges.apply_default_limits,),
    "volumeattributesclasses.storage.k8s.io": (resource_defaults.add_protection_finalizer,),
}

#: Plugins that judge an object, by kind and sub-resource.
_VALIDATING: Mapping[str, tuple[Plugin, ...]] = {
    "namespaces": (pod_security.check_namespace_labels,),
    "persistentvolumeclaims": (limit_ranges.check_claim_limits, resource_defaults.check_volume_expansion),
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
        (pod_security.check_pod_template,),
    ),
}


class AdmissionChain:
    """The admission plugins of one server."""

    def __init__(
        self,
        store: Store,
        service_accounts: random.Random | None = None,
        policies: ValidatingPolicies | None = None,
        mutating_policies: MutatingPolicies | None = None,
        webhooks: AdmissionWebhooks | None = None,
    ) -> None:
        """`service_accounts` gives pods an account and its token, drawing volume names from it; None does not."""
        self._store = store
        self._validating_policies = policies
        self._mutating_policies = mutating_policies
        self._webhooks = webhooks
        self._service_accounts = None if service_accounts is None else ServiceAccountPlugin(service_accounts)

    def new_request(
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
    ) -> AdmissionRequest:
        """Return the attempt to write `value`; `old` is the live object, None for a creation."""
        own_warnings = [] if warnings is None else warnings
        where = resource, namespace, name, subresource
        return AdmissionRequest(
            *where, value, old, self._store, now, own_warnings, user, dry_run, options or {}, deletes
        )

    def admit(self, attempt: AdmissionRequest) -> None:
        """Let the plugins change the object, or refuse it with a Failure."""
        namespace_lifecycle.check_namespace(attempt)
        self._run_mutating_plugins(attempt)
        if not self._has_mutating_extensions:
            return
        by_policies, by_webhooks = ReinvocationContext(), ReinvocationContext()
        self._run_mutating_extensions(attempt, by_policies, by_webhooks)
        if by_policies.object_changed or by_webhooks.object_changed:
            by_policies.round = by_webhooks.round = 1
            self._run_mutating_plugins(attempt)
            self._run_mutating_extensions(attempt, by_policies, by_webhooks)

    @property
    def _has_mutating_extensions(self) -> bool:
        """Whether there is any policy or webhook that may change objects; most writes pay no more than this."""
        policies = self._mutating_policies
        return (policies is not None and policies.any_bound) or self.has_webhooks

    def is_name_dependent(self, namespace: str) -> bool:
        """Return whether pods of a namespace that differ in their names alone may be admitted differently.

        That is so where they are charged to a quota, judged by a policy or webhook, or given a token each.
        """
        has_quotas = any(True for _ in self._store.in_namespace("resourcequotas", namespace))
        return (
            has_quotas
            or self._service_accounts is not None
            or self._has_mutating_extensions
            or self.validates_deletions
        )

    def _run_mutating_extensions(
        self, attempt: AdmissionRequest, by_policies: ReinvocationContext, by_webhooks: ReinvocationContext
    ) -> None:
        """Let policies and webhooks of users change the object, those whose turn it is."""
        if self._mutating_policies is not None:
            self._mutating_policies.mutate(attempt, by_policies)
        if self._webhooks is not None:
            self._webhooks.mutate(attempt, by_webhooks)

    def _run_mutating_plugins(self, attempt: AdmissionRequest) -> None:
        """Let our own plugins change the object."""
        place = _plugin_key(attempt)
        if self._service_accounts is not None and place == "pods":
            self._service_accounts.admit(attempt)
        for plugin in _MUTATING.get(place, ()):
            plugin(attempt)

    def validate(self, attempt: AdmissionRequest) -> QuotaCharges:
        """Let the plugins judge the whole object; return the quotas to write before it, unless it is a dry run."""
        for plugin in _VALIDATING.get(_plugin_key(attempt), ()):
            plugin(attempt)
        self._run_validating_extensions(attempt)
        return charge_quotas(attempt)

    @property
    def validates_deletions(self) -> bool:
        """Whether anybody has a say in what is deleted."""
        return self.has_webhooks or (self._validating_policies is not None and self._validating_policies.any_bound)

    @property
    def has_webhooks(self) -> bool:
        """Whether there is any webhook."""
        return self._webhooks is not None and self._webhooks.any_configured

    def validate_deletion(self, attempt: AdmissionRequest) -> None:
        """Let webhooks and policies refuse a deletion; the former may not change anything, but are asked."""
        if self._webhooks is not None:
            self._webhooks.mutate(attempt, ReinvocationContext())
        self._run_validating_extensions(attempt)

    def _run_validating_extensions(self, attempt: AdmissionRequest) -> None:
        if self._validating_policies is not None:
            self._validating_policies.validate(attempt)
        if self._webhooks is not None:
            self._webhooks.validate(attempt)


def _plugin_key(attempt: AdmissionRequest) -> str:
    """Return the kind and sub-resource that is written: `pods`, `pods/resize`."""
    place = attempt.resource.storage
    return f"{place}/{attempt.subresource}" if attempt.subresource else place
