"""Who writes an admission policy, or binds one, must be able to read the parameters that it is evaluated with.

Otherwise a policy would tell its author, by what it refuses, what is in objects that the author cannot read
(Kubernetes: pkg/registry/admissionregistration/{validating,mutating}admissionpolicy{,binding}/authz.go). What is judged
here has passed validation, and so is complete.
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
#: The policies that each sort of binding is about.
_BINDINGS = {each.replace("policies", "policybindings"): each for each in _POLICIES}
_WILDCARD = "*"


class PolicyParameterAuthorizer:
    """Judges policies and their bindings by what their authors can read."""

    def __init__(self, store: Store, table: KindTable, authorizer: Authorizer) -> None:
        self._store = store
        self._kind_table = table
        self._authorizer = authorizer

    def validate(self, write: Write, value: KubeObject, old: KubeObject | None) -> list[FieldError]:
        """Return what is wrong with a policy or binding that is valid by itself; nothing for all other kinds."""
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
        named = f"(kind={kind['kind']}, apiVersion={kind['apiVersion']})"
        problem = f'user {_go_text(user)} must have "get" permission on all objects of the referenced paramKind {named}'
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
            # Of a mutating policy the real server confuses who and what (mutatingadmissionpolicybinding/authz.go).
            who, what = (_go_text(user), verb) if policies == _POLICIES[0] else (verb, _go_text(user))
            problem = f'user {who} does not have "{what}" permission on the object referenced by paramRef'
        return [field_errors.forbidden("spec.paramRef", problem)]

    def _resolve_kind(self, kind: KubeObject) -> tuple[str, str, str]:
        """Return group, version and resource of a kind; of an unknown one all resources are meant."""
        group, _, version = kind["apiVersion"].rpartition("/")
        resource = self._kind_table.of_kind(group, version, kind["kind"])
        return group, version, _WILDCARD if resource is None else resource.plural

    def _allows(self, user: User, wish: Attributes) -> bool:
        return self._authorizer.authorize(user, wish).allowed


def _go_text(user: User) -> str:
    """Write a user as Go prints one."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
