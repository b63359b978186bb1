"""Find the policies that apply to a request, with their bindings and parameters.

Validating and mutating policies are bound in the same way (Kubernetes:
apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go). Policies run in the order of their names, which is
arbitrary in kube-apiserver.
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
    """A policy that applies to a request, with one of its bindings and one parameter object."""

    policy: KubeObject
    binding: KubeObject
    params: KubeObject | None
    #: The resource in the version in which the policy sees the objects.
    target: Resource

    @property
    def identity(self) -> tuple[str, str, str]:
        """The names of policy, binding and parameter, unique within a request."""
        meta = {} if self.params is None else self.params["metadata"]
        params = f"{meta.get('namespace', '')}/{meta.get('name', '')}"
        return self.policy["metadata"]["name"], self.binding["metadata"]["name"], params


class PolicyProblem(NamedTuple):
    """A policy that cannot be applied or denies a request; `binding` is None if the policy itself is misconfigured."""

    policy: KubeObject
    binding: KubeObject | None
    message: str
    #: The reason of the Status; "" for the default.
    reason: str = ""

    @property
    def text(self) -> str:
        """The message to the client, without the kind of the policy."""
        bound = "" if self.binding is None else f" with binding '{self.binding['metadata']['name']}'"
        return f"'{self.policy['metadata']['name']}'{bound} denied request: {self.message}"


class _Misconfigured(Exception):
    """A policy or binding cannot be applied."""


class BoundPolicies:
    """The validating or the mutating policies of a server, with their bindings."""

    def __init__(self, store: Store, versions: VersionConverter, storage: str, bindings: str) -> None:
        """`storage` and `bindings` are the storage names of the policies and bindings."""
        self._store = store
        self._version_converter = versions
        self._storage, self._bindings = storage, bindings

    def invocations_for(self, request: AdmissionRequest) -> Iterator[PolicyInvocation | PolicyProblem]:
        """Yield the policies that apply to a request, or the problems that prevent this.

        Policies and webhook configurations themselves are exempt; otherwise a faulty one could not be removed.
        """
        if request.resource.group == _GROUP:
            return
        by_policy: dict[str, list[KubeObject]] = {}
        for _, (binding, _) in sorted(self._store.entries(self._bindings).items()):
            by_policy.setdefault(binding["spec"]["policyName"], []).append(binding)
        for name in sorted(by_policy):
            policy = self._store.get(self._storage, Key(name))
            scope = None if policy is None else policy["spec"].get("matchConstraints") or {}
            if policy is None or scope is None or not scope_matches(scope, request):
                continue
            target = matched_resource(scope, "resourceRules", request, self._version_converter) or request.resource
            yield from self._invocations_of(policy, by_policy[name], target, request)

    def _invocations_of(
        self, policy: KubeObject, bindings: list[KubeObject], target: Resource, request: AdmissionRequest
    ) -> Iterator[PolicyInvocation | PolicyProblem]:
        try:
            kind = self._resolve_param_kind(policy)
        except _Misconfigured as problem:
            yield PolicyProblem(policy, None, f"failed to configure policy: {problem}")
            return
        for binding in bindings:
            scope = binding["spec"].get("matchResources")
            if scope is not None and not scope_matches(scope, request):
                continue
            try:
                for params in self._resolve_params(kind, binding["spec"].get("paramRef"), request):
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
        self, kind: Resource | None, reference: KubeObject | None, request: AdmissionRequest
    ) -> list[KubeObject | None]:
        """Return the parameter objects to evaluate a policy with; a single None if it has no parameters."""
        if kind is None or reference is None:
            return [None]
        if kind.namespaced and not reference.get("namespace") and not request.namespace:
            raise _Misconfigured(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        if not kind.namespaced and reference.get("namespace"):
            raise _Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        params = [
            self._version_converter.to_version(each, kind, kind)
            for each in self._referenced_params(kind, reference, request)
        ]
        if not params and reference.get("parameterNotFoundAction") == "Deny":
            raise _Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
        return [*params]

    def _referenced_params(
        self, kind: Resource, reference: KubeObject, request: AdmissionRequest
    ) -> Iterator[KubeObject]:
        prefix = f"{reference.get('namespace') or request.namespace}/" if kind.namespaced else ""
        if reference.get("name"):
            param = self._store.get(kind.storage, Key(f"{prefix}{reference['name']}"))
            if param is not None:
                yield param
            return
        selector = selector_of(reference.get("selector"))
        for key, (param, _) in sorted(self._store.entries(kind.storage).items()):
            if key.startswith(prefix) and selector.matches(param["metadata"].get("labels")):
                yield param
