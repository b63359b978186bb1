"""Which policies are about an attempt, through which binding, and with which parameter.

Validating and mutating policies are bound in the same way. Kubernetes: apiserver/pkg/admission/plugin/policy/generic,
policy_dispatcher.go. Policies are taken in the order of their names, which the real server leaves to chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from batkube.api.admission.dynamic.matching import VersionConverter, matched_resource, scope_matches
from batkube.api.admission.request import AdmissionRequest
from batkube.cluster.kinds import Resource
from batkube.cluster.selectors import selector_of
from batkube.cluster.store import Key, KubeObject, Store

_GROUP = "admissionregistration.k8s.io"


class PolicyInvocation(NamedTuple):
    """A policy that is about an attempt."""

    policy: KubeObject
    binding: KubeObject
    params: KubeObject | None
    #: The kind in the version in which the policy wishes to see objects.
    target: Resource

    @property
    def identity(self) -> tuple[str, str, str]:
        """Tells it apart from the others of an attempt."""
        meta = {} if self.params is None else self.params["metadata"]
        params = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
        return self.policy["metadata"]["name"], self.binding["metadata"]["name"], params


class PolicyProblem(NamedTuple):
    """What keeps a policy from being applied; `binding` is None where it is the policy itself."""

    policy: KubeObject
    binding: KubeObject | None
    message: str
    #: For the client; "" for the one that a refusal has anyway.
    reason: str = ""

    @property
    def text(self) -> str:
        """As clients are told, after the kind of the policy."""
        bound = "" if self.binding is None else f" with binding '{self.binding['metadata']['name']}'"
        return f"'{self.policy['metadata']['name']}'{bound} denied request: {self.message}"


class _Misconfigured(Exception):
    """A policy or a binding that cannot be applied."""


class BoundPolicies:
    """The policies of one sort, with their bindings."""

    def __init__(self, store: Store, versions: VersionConverter, storage: str, bindings: str) -> None:
        """`storage` and `bindings` are what policies and bindings are stored as."""
        self._store = store
        self._version_converter = versions
        self._storage, self._bindings = storage, bindings

    @property
    def any_bound(self) -> bool:
        """Whether any policy is bound."""
        return bool(self._store.entries(self._bindings))

    def invocations_for(self, attempt: AdmissionRequest) -> Iterator[PolicyInvocation | PolicyProblem]:
        """Yield the policies that are about an attempt, and what keeps some from being applied.

        Policies and webhooks themselves are exempt: a bad one could not be removed.
        """
        if attempt.resource.group == _GROUP:
            return
        by_policy: dict[str, list[KubeObject]] = {}
        for _, (binding, _) in sorted(self._store.entries(self._bindings).items()):
            by_policy.setdefault(binding["spec"]["policyName"], []).append(binding)
        for name in sorted(by_policy):
            policy = self._store.get(self._storage, Key(name))
            scope = None if policy is None else policy["spec"].get("matchConstraints") or {}
            if policy is None or scope is None or not scope_matches(scope, attempt):
                continue
            target = matched_resource(scope, "resourceRules", attempt, self._version_converter) or attempt.resource
            yield from self._invocations_of(policy, by_policy[name], target, attempt)

    def _invocations_of(
        self, policy: KubeObject, bindings: list[KubeObject], target: Resource, attempt: AdmissionRequest
    ) -> Iterator[PolicyInvocation | PolicyProblem]:
        try:
            kind = self._resolve_param_kind(policy)
        except _Misconfigured as problem:
            yield PolicyProblem(policy, None, f"failed to configure policy: {problem}")
            return
        for binding in bindings:
            scope = binding["spec"].get("matchResources")
            if scope is not None and not scope_matches(scope, attempt):
                continue
            try:
                for params in self._resolve_params(kind, binding["spec"].get("paramRef"), attempt):
                    yield PolicyInvocation(policy, binding, params, target)
            except _Misconfigured as problem:
                yield PolicyProblem(policy, binding, f"failed to configure binding: {problem}")

    def _resolve_param_kind(self, policy: KubeObject) -> Resource | None:
        kind = policy["spec"].get("paramKind")
        if kind is None:
            return None
        group, _, version = kind["apiVersion"].rpartition("/")
        resource = self._version_converter.of_kind(group, version, kind["kind"])
        if resource is None:
            raise _Misconfigured(
                f"failed to find resource referenced by paramKind: '{kind['apiVersion']}, Kind={kind['kind']}'"
            )
        return resource

    def _resolve_params(
        self, kind: Resource | None, reference: KubeObject | None, attempt: AdmissionRequest
    ) -> list[KubeObject | None]:
        """Return the objects that a policy is applied with, one after the other; None for none."""
        if kind is None or reference is None:
            return [None]
        if kind.namespaced and not reference.get("namespace") and not attempt.namespace:
            raise _Misconfigured(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        if not kind.namespaced and reference.get("namespace"):
            raise _Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        found = [
            self._version_converter.to_version(one, kind, kind)
            for one in self._referenced_params(kind, reference, attempt)
        ]
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise _Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
        return [*found]

    def _referenced_params(
        self, kind: Resource, reference: KubeObject, attempt: AdmissionRequest
    ) -> Iterator[KubeObject]:
        prefix = f"{reference.get('namespace') or attempt.namespace}/" if kind.namespaced else ""
        if reference.get("name"):
            found = self._store.get(kind.storage, Key(f"{prefix}{reference['name']}"))
            if found is not None:
                yield found
            return
        selector = selector_of(reference.get("selector"))
        for key, (one, _) in sorted(self._store.entries(kind.storage).items()):
            if key.startswith(prefix) and selector.matches(one["metadata"].get("labels")):
                yield one
