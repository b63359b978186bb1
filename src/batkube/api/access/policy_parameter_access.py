"""Require that authors of admission policies and bindings can read the parameters of the policy.

Otherwise a policy's decisions could reveal the content of objects that its author cannot read (Kubernetes:
pkg/registry/admissionregistration/{validating,mutating}admissionpolicy{,binding}/authz.go). The checks run after
validation, so required fields are present.
"""

from __future__ import annotations

from batkube.api.access.rbac_authorizer import Attributes, Authorizer
from batkube.api.requests.users import User
from batkube.api.requests.writes import Write
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError
from batkube.cluster.kinds import KindTable
from batkube.cluster.store import Key, KubeObject, Store

_GROUP = "admissionregistration.k8s.io"
_POLICIES = tuple(f"{sort}admissionpolicies.{_GROUP}" for sort in ("validating", "mutating"))
#: The policy kind of each binding kind.
_BINDINGS = {each.replace("policies", "policybindings"): each for each in _POLICIES}
_WILDCARD = "*"


class PolicyParameterAuthorizer:
    """Checks whether the author of a policy or binding can read its parameters."""

    def __init__(self, store: Store, table: KindTable, authorizer: Authorizer) -> None:
        self._store = store
        self._kind_table = table
        self._authorizer = authorizer

    def validate(self, write: Write, value: KubeObject, old: KubeObject | None) -> list[FieldError]:
        """Return the problems of a valid policy or binding; none for all other kinds."""
        if write.user.is_master or write.stored.storage not in (*_POLICIES, *_BINDINGS):
            return []
        spec, before = value["spec"], (old or {"spec": {}})["spec"]
        kind, reference = spec.get("paramKind"), spec.get("paramRef")
        if kind is not None and kind != before.get("paramKind"):
            return self._validate_param_kind(write.user, kind)
        if reference is not None and any(spec[part] != before.get(part) for part in ("paramRef", "policyName")):
            return self._validate_param_ref(write, reference, spec["policyName"])
        return []

    def _validate_param_kind(self, user: User, kind: KubeObject) -> list[FieldError]:
        group, version, resource = self._resolve_kind(kind)
        if self._allows(user, Attributes("get", group, version, resource, namespace=_WILDCARD, name=_WILDCARD)):
            return []
        kind_text = f"(kind={kind['kind']}, apiVersion={kind['apiVersion']})"
        problem = (
            f'user {_go_text(user)} must have "get" permission on all objects of the referenced paramKind {kind_text}'
        )
        return [field_errors.forbidden("spec.paramKind", problem)]

    def _validate_param_ref(self, write: Write, reference: KubeObject, policy_name: str) -> list[FieldError]:
        user, policies = write.user, _BINDINGS[write.stored.storage]
        policy = self._store.get(policies, Key(policy_name))
        kind = None if policy is None else (policy.get("spec") or {}).get("paramKind")
        group, version, resource = (_WILDCARD, _WILDCARD, _WILDCARD) if kind is None else self._resolve_kind(kind)
        name, namespace = reference.get("name", ""), reference.get("namespace", "")
        verb = "get" if name else "list"
        if self._allows(user, Attributes(verb, group, version, resource, namespace=namespace, name=name)):
            return []
        lacks = f'user {_go_text(user)} does not have "{verb}" permission'
        unknown = "to determine minimum required permissions and"
        everything = "for all groups, versions and resources"
        if policy is None:
            problem = f"unable to get policy {policy_name} {unknown} {lacks} {everything}"
        elif kind is not None and resource == _WILDCARD:
            kind_text = f"&{{{kind['apiVersion']} {kind['kind']}}}"
            problem = f"unable to resolve paramKind {kind_text} {unknown} {lacks} {everything}"
        else:
            # For a mutating policy, kube-apiserver swaps user and verb (mutatingadmissionpolicybinding/authz.go).
            first, second = (_go_text(user), verb) if policies == _POLICIES[0] else (verb, _go_text(user))
            problem = f'user {first} does not have "{second}" permission on the object referenced by paramRef'
        return [field_errors.forbidden("spec.paramRef", problem)]

    def _resolve_kind(self, kind: KubeObject) -> tuple[str, str, str]:
        """Return the group, version and resource of a kind; the resource of an unknown kind is `*`."""
        group, _, version = kind["apiVersion"].rpartition("/")
        resource = self._kind_table.of_kind(group, version, kind["kind"])
        return group, version, _WILDCARD if resource is None else resource.plural

    def _allows(self, user: User, attributes: Attributes) -> bool:
        return self._authorizer.authorize(user, attributes).allowed


def _go_text(user: User) -> str:
    """Format a user as Go's %v does."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
