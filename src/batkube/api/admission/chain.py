"""The chain of admission plugins.

As in kube-apiserver there are two phases. `AdmissionChain.admit` (mutating) runs before the kind's strategy and
validation and may change the object. `AdmissionChain.validate` runs after them and can only reject the object; the
quota updates that it returns must be written before the object. The plugins are those that kube-apiserver enables by
default, in its order (Kubernetes: pkg/kubeapiserver/options/plugins.go, AllOrderedPlugins).
"""

from __future__ import annotations

import random
from typing import Any

from batkube.api.admission.built_in import (
    default_tolerations,
    limit_ranges,
    namespace_lifecycle,
    pod_security,
    priorities,
    resizes,
    resource_defaults,
    runtime_classes,
)
from batkube.api.admission.built_in.quotas import QuotaCharges, charge_quotas
from batkube.api.admission.built_in.service_accounts import ServiceAccountPlugin
from batkube.api.admission.dynamic.mutating_policies import MutatingPolicies
from batkube.api.admission.dynamic.reinvocation import ReinvocationContext
from batkube.api.admission.dynamic.validating_policies import ValidatingPolicies
from batkube.api.admission.dynamic.webhooks import AdmissionWebhooks
from batkube.api.admission.request import AdmissionRequest, Plugin
from batkube.api.requests.users import User
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject, Store
from batkube.kernel.instants import Instant

#: Mutating plugins by kind and subresource.
_MUTATING: dict[str, tuple[Plugin, ...]] = {
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
    "podgroups.scheduling.k8s.io": (priorities.set_group_priority,),
    "pods/resize": (limit_ranges.apply_default_limits,),
    "volumeattributesclasses.storage.k8s.io": (resource_defaults.add_protection_finalizer,),
}

#: Validating plugins by kind and subresource.
_VALIDATING: dict[str, tuple[Plugin, ...]] = {
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


_NO_KINDS: frozenset[str] = frozenset()
_QUOTAS = frozenset({"resourcequotas"})


class AdmissionChain:
    """The admission plugins of one server."""

    def __init__(
        self,
        store: Store,
        service_accounts: random.Random | None = None,
        policies: ValidatingPolicies | None = None,
        mutating_policies: MutatingPolicies | None = None,
        webhooks: AdmissionWebhooks | None = None,
        can_resize: resizes.CanResize = lambda _: True,
    ) -> None:
        """Build the chain.

        `service_accounts` generates the names of token volumes; if None, pods get no service account token.
        """
        self._store = store
        self._validating_policies = policies
        self._mutating_policies = mutating_policies
        self._webhooks = webhooks
        self._adds_account_tokens = service_accounts is not None
        #: The kinds that configure webhooks, mutating extensions and validating ones. Most clusters have no such
        #: object, and a look at the kinds that exist is fast.
        self._webhook_kinds = _NO_KINDS if webhooks is None else webhooks.configured_by
        self._mutating_kinds = self._webhook_kinds | (
            _NO_KINDS if mutating_policies is None else mutating_policies.configured_by
        )
        self._validating_kinds = self._webhook_kinds | (_NO_KINDS if policies is None else policies.configured_by)
        self._extension_kinds = self._mutating_kinds | self._validating_kinds
        account_plugins = () if service_accounts is None else (ServiceAccountPlugin(service_accounts).admit,)
        self._mutating_plugins = _MUTATING | {"pods": (*account_plugins, *_MUTATING["pods"])}
        resize_checks = (*_VALIDATING["pods/resize"], resizes.resize_check(can_resize))
        self._validating_plugins = _VALIDATING | {"pods/resize": resize_checks}

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
        """Return the admission request of a write of `value`; `old` is the live object, None for a create."""
        own_warnings = [] if warnings is None else warnings
        target = resource, namespace, name, subresource
        return AdmissionRequest(
            *target, value, old, self._store, now, own_warnings, user, dry_run, options or {}, deletes
        )

    def admit(self, request: AdmissionRequest) -> None:
        """Run the mutating plugins, policies and webhooks; raises Failure if one rejects the object.

        Policies and webhooks run a second time if they have changed the object (`reinvocation`).
        """
        namespace_lifecycle.check_namespace(request)
        self._run_mutating_plugins(request)
        if not self._store.has_any(self._mutating_kinds):
            return
        policy_context, webhook_context = ReinvocationContext(), ReinvocationContext()
        self._run_mutating_extensions(request, policy_context, webhook_context)
        if policy_context.object_changed or webhook_context.object_changed:
            policy_context.round = webhook_context.round = 1
            self._run_mutating_plugins(request)
            self._run_mutating_extensions(request, policy_context, webhook_context)

    @property
    def has_extensions(self) -> bool:
        """Whether any policy or webhook may see writes."""
        return self._store.has_any(self._extension_kinds)

    def is_name_dependent(self, namespace: str) -> bool:
        """Return whether the admission of a pod in this namespace may depend on the pod's name.

        That is the case if there are quotas, policies or webhooks, or if each pod gets a token volume.
        """
        if self._adds_account_tokens or self.has_extensions:
            return True
        return self._store.has_any(_QUOTAS) and any(True for _ in self._store.in_namespace("resourcequotas", namespace))

    def _run_mutating_extensions(
        self, request: AdmissionRequest, policy_context: ReinvocationContext, webhook_context: ReinvocationContext
    ) -> None:
        """Run the mutating policies and webhooks that are due in this round."""
        if self._mutating_policies is not None:
            self._mutating_policies.mutate(request, policy_context)
        if self._webhooks is not None:
            self._webhooks.mutate(request, webhook_context)

    def _run_mutating_plugins(self, request: AdmissionRequest) -> None:
        """Run the built-in mutating plugins."""
        for plugin in self._mutating_plugins.get(_plugin_key(request), ()):
            plugin(request)

    def validate(self, request: AdmissionRequest) -> QuotaCharges:
        """Run the validating plugins, policies and webhooks, and charge the quotas; raises Failure.

        Return the updated quotas; unless it is a dry run, write them before the object.
        """
        for plugin in self._validating_plugins.get(_plugin_key(request), ()):
            plugin(request)
        self._run_validating_extensions(request)
        return charge_quotas(request)

    @property
    def validates_deletions(self) -> bool:
        """Whether any policy or webhook may reject deletions."""
        return self._store.has_any(self._validating_kinds)

    @property
    def has_webhooks(self) -> bool:
        """Whether any webhook is configured."""
        return self._store.has_any(self._webhook_kinds)

    def validate_deletion(self, request: AdmissionRequest) -> None:
        """Run policies and webhooks on a deletion. Mutating webhooks are called too, but may only reject it."""
        if self._webhooks is not None:
            self._webhooks.mutate(request, ReinvocationContext())
        self._run_validating_extensions(request)

    def _run_validating_extensions(self, request: AdmissionRequest) -> None:
        if not self._store.has_any(self._validating_kinds):
            return
        if self._validating_policies is not None:
            self._validating_policies.validate(request)
        if self._webhooks is not None:
            self._webhooks.validate(request)


def _plugin_key(request: AdmissionRequest) -> str:
    """Return the kind and subresource that is written: `pods`, `pods/resize`."""
    kind = request.resource.storage
    return f"{kind}/{request.subresource}" if request.subresource else kind
