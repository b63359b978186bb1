"""Role-based access control (RBAC) over the roles and bindings in the store.

Rules only grant, so a request is allowed as soon as one rule of a role bound to the user matches. Members of
`system:masters` may do everything without a lookup. The rules of a user are cached until a role or binding changes
(Kubernetes: plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User
from batkube.cluster.selectors import SelectorError, selector_of
from batkube.cluster.store import Batch, Key, KubeObject, Store
from batkube.kernel.instants import Instant
from batkube.text.go_format import go_quote

RBAC_GROUP = "rbac.authorization.k8s.io"
ROLES = f"roles.{RBAC_GROUP}"
CLUSTER_ROLES = f"clusterroles.{RBAC_GROUP}"
ROLE_BINDINGS = f"rolebindings.{RBAC_GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{RBAC_GROUP}"

#: How many pairs of user and namespace the cache holds.
_MAX_CACHED = 1000


class Attributes(msgspec.Struct, frozen=True):
    """The attributes of a request that authorization considers.

    If `path` is set, even to "", the request is not about a resource.
    """

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str | None = None


class AccessDecision(NamedTuple):
    """Whether a request is allowed, with the reason that kube-apiserver reports."""

    allowed: bool
    reason: str = ""


class GrantedRule(NamedTuple):
    """A rule that a user has, and a description of the binding that grants it."""

    rule: KubeObject
    source: str


_ALLOWED_AS_MASTER = AccessDecision(True)


class Authorizer:
    """Decides whether users may do what they request."""

    def __init__(self, store: Store, aggregates: bool = True) -> None:
        """Create the authorizer.

        * `aggregates`: Whether to resolve aggregated roles, as the clusterrole-aggregation controller does by copying
          rules (Kubernetes: pkg/controller/clusterroleaggregation).
        """
        self._store = store
        self._aggregates = aggregates
        #: The rules of a user in a namespace, and the errors met while resolving them.
        self._granted_rules_cache: dict[tuple[str, tuple[str, ...], str], tuple[list[GrantedRule], list[str]]] = {}
        for kind in (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            store.subscribe(kind, self._clear_cache)

    def _clear_cache(self, batch: Batch, now: Instant) -> None:
        self._granted_rules_cache.clear()

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        """Return whether `user` may send a request with these attributes."""
        if user.is_master:
            return _ALLOWED_AS_MASTER
        grants, problems = self.granted_rules(user, attributes.namespace)
        allows = _rule_allows_resource if attributes.path is None else _rule_allows_path
        for rule, source in grants:
            if allows(rule, attributes):
                return AccessDecision(True, f"RBAC: allowed by {source}")
        if not problems:
            return AccessDecision(False)
        return AccessDecision(False, f"RBAC: {problems[0] if len(problems) == 1 else '[' + ', '.join(problems) + ']'}")

    def require(self, user: User, attributes: Attributes) -> None:
        """Raise a 403 unless `user` may send a request with these attributes."""
        if not user.is_master:
            decision = self.authorize(user, attributes)
            if not decision.allowed:
                raise forbidden_error(user, attributes, decision.reason)

    def granted_rules(self, user: User, namespace: str) -> tuple[list[GrantedRule], list[str]]:
        """Return the rules that `user` has in `namespace` ("" for cluster-wide), and the problems with its bindings."""
        key = (user.name, user.groups, namespace)
        result = self._granted_rules_cache.get(key)
        if result is None:
            if len(self._granted_rules_cache) >= _MAX_CACHED:
                self._granted_rules_cache.clear()
            grants: list[GrantedRule] = []
            problems: dict[str, None] = {}
            for binding, place, source in self._bindings_of_user(user, namespace):
                rules, problem = self.rules_of_role(binding["roleRef"], place)
                grants += [GrantedRule(rule, source) for rule in rules]
                if problem:
                    problems[problem] = None
            result = self._granted_rules_cache[key] = (grants, list(problems))
        return result

    def _bindings_of_user(self, user: User, namespace: str) -> Iterator[tuple[KubeObject, str, str]]:
        """Yield the bindings of `user`, sorted by name, each with its namespace and a description."""
        for _, binding in sorted(self._store.all(CLUSTER_ROLE_BINDINGS).items()):
            subject = _matching_subject(user, binding, "")
            if subject is not None:
                yield binding, "", _describe_binding("ClusterRoleBinding", binding, subject, "")
        if not namespace:
            return
        for _, binding in sorted(self._store.in_namespace(ROLE_BINDINGS, namespace), key=lambda item: item[0]):
            subject = _matching_subject(user, binding, namespace)
            if subject is not None:
                yield binding, namespace, _describe_binding("RoleBinding", binding, subject, namespace)

    def rules_of_role(self, reference: KubeObject, namespace: str) -> tuple[list[KubeObject], str]:
        """Return the rules of the role that a binding refers to, and an error text ("" for none)."""
        kind, name = reference.get("kind", ""), reference["name"]
        if kind == "Role":
            role = self._store.get(ROLES, Key(f"{namespace}/{name}"))
        elif kind == "ClusterRole":
            role = self._store.get(CLUSTER_ROLES, Key(name))
        else:
            return [], f"unsupported role reference kind: {go_quote(kind)}"
        if role is None:
            return [], f"{kind.lower()}.{RBAC_GROUP} {go_quote(name)} not found"
        if self._aggregates and role.get("aggregationRule"):
            return self._aggregated_rules(role, []), ""
        return role.get("rules") or [], ""

    def _aggregated_rules(self, role: KubeObject, seen: list[str]) -> list[KubeObject]:
        """Return the rules of all roles that an aggregated role selects; those may be aggregated too."""
        name = role["metadata"]["name"]
        if name in seen:
            return []
        # By their JSON, to drop duplicates.
        rules: dict[bytes, KubeObject] = {}
        for value in role["aggregationRule"].get("clusterRoleSelectors") or ():
            try:
                selector = selector_of(value)
            except SelectorError:
                continue
            for _, part in sorted(self._store.all(CLUSTER_ROLES).items()):
                if selector.matches(part["metadata"].get("labels")):
                    deeper = part.get("aggregationRule")
                    more = self._aggregated_rules(part, [*seen, name]) if deeper else part.get("rules") or []
                    rules |= {msgspec.json.encode(rule): rule for rule in more if rule}
        return list(rules.values())


def forbidden_error(user: User, attributes: Attributes, reason: str = "") -> Failure:
    """Return the 403 of a denied request, in kube-apiserver's words."""
    # Kubernetes: apiserver/pkg/endpoints/handlers/responsewriters/errors.go, forbiddenMessage.
    if attributes.path is not None:
        problem = f"User {go_quote(user.name)} cannot {attributes.verb} path {go_quote(attributes.path)}"
    else:
        resource = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
        in_namespace = f"in the namespace {go_quote(attributes.namespace)}"
        problem = (
            f"User {go_quote(user.name)} cannot {attributes.verb} resource {go_quote(resource)} in API group "
            f"{go_quote(attributes.group)} {in_namespace if attributes.namespace else 'at the cluster scope'}"
        )
    problem = problem.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    about = f"{resource} {go_quote(attributes.name)}" if attributes.resource and attributes.name else resource
    message = f"{about} is forbidden: {problem}" if about else f"forbidden: {problem}"
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return Failure(
        403,
        "Forbidden",
        f"{message}: {reason}" if reason else message,
        {key: value for key, value in details.items() if value},
    )


# Subjects of bindings and matching of rules


def _matching_subject(user: User, binding: KubeObject, namespace: str) -> KubeObject | None:
    """Return the first subject of a binding that matches `user`, or None."""
    # Kubernetes: pkg/registry/rbac/validation/rule.go, appliesTo.
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "User":
            is_match = user.name == name
        elif kind == "Group":
            is_match = name in user.groups
        elif kind == "ServiceAccount":
            place = subject.get("namespace") or namespace
            is_match = bool(place) and user.name == f"system:serviceaccount:{place}:{name}"
        else:
            is_match = False
        if is_match:
            match: KubeObject = subject
            return match
    return None


def _describe_binding(kind: str, binding: KubeObject, subject: KubeObject, namespace: str) -> str:
    """Describe which binding grants the permission, as kube-apiserver does."""
    # Kubernetes: pkg/registry/rbac/validation/rule.go, clusterRoleBindingDescriber and roleBindingDescriber.
    name, role, subject_name = binding["metadata"]["name"], binding["roleRef"], subject.get("name", "")
    if namespace:
        name = f"{name}/{namespace}"
    if subject["kind"] == "ServiceAccount":
        subject_name = f"{subject_name}/{subject.get('namespace') or namespace}"
    to = f"{subject['kind']} {go_quote(subject_name)}"
    return f"{kind} {go_quote(name)} of {role['kind']} {go_quote(role['name'])} to {to}"


# Kubernetes: plugin/pkg/auth/authorizer/rbac/rbac.go, RuleAllows; pkg/apis/rbac/v1/evaluation_helpers.go.


def _rule_allows_resource(rule: KubeObject, attributes: Attributes) -> bool:
    verbs = rule.get("verbs") or ()
    if attributes.verb not in verbs and "*" not in verbs:
        return False
    groups = rule.get("apiGroups") or ()
    if attributes.group not in groups and "*" not in groups:
        return False
    resources, resource, subresource = rule.get("resources") or (), attributes.resource, attributes.subresource
    if subresource:
        resource = f"{resource}/{subresource}"
    if resource not in resources and "*" not in resources and not (subresource and f"*/{subresource}" in resources):
        return False
    names = rule.get("resourceNames")
    return not names or attributes.name in names


def _rule_allows_path(rule: KubeObject, attributes: Attributes) -> bool:
    verbs = rule.get("verbs") or ()
    if attributes.verb not in verbs and "*" not in verbs:
        return False
    path = attributes.path or ""
    return any(
        path == allowed or (allowed.endswith("*") and path.startswith(allowed.rstrip("*")))
        for allowed in rule.get("nonResourceURLs") or ()
    )
