"""Prevent privilege escalation: users cannot grant permissions that they do not have.

* To write a role, a user needs every permission in it, or the verb `escalate` on roles.
* To write a role with an aggregation rule, a user needs all permissions.
* To write a binding, a user needs every permission of the role, or the verb `bind` on it.

Kubernetes: pkg/registry/rbac/*/policybased, component-helpers/auth/rbac/validation.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from batkube.api.access.rbac_authorizer import RBAC_GROUP, Attributes, Authorizer
from batkube.api.requests.statuses import Failure, bad_request, forbidden, internal_error, not_found
from batkube.api.requests.writes import Write
from batkube.cluster.store import KubeObject
from batkube.text.go_format import go_quote

_ROLES = ("roles", "clusterroles")
_RESOURCE_OF = {"Role": "roles", "ClusterRole": "clusterroles"}
#: The rules of `cluster-admin`, which grant everything.
_ALL_RULES = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
)
#: Metadata fields that the garbage collector updates, and those that change as a consequence.
_GARBAGE_COLLECTED_FIELDS = ("ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion")
#: A rule is the product of its lists, so a few kilobytes can name billions of permissions, and each is compared with
#: every rule of the user. This many comparisons take half a second.
_MAX_COMPARISONS = 500_000
#: The cost of generating one single-permission rule, in comparisons.
_COMPARISON_OVERHEAD = 20
_RULE_FIELDS = ("apiGroups", "resources", "nonResourceURLs", "resourceNames", "verbs")


def check_escalation(authorizer: Authorizer, write: Write, value: KubeObject, old: KubeObject | None) -> None:
    """Raise a 403 if a role or binding grants permissions that the user lacks; `old` is None for a create."""
    if write.user.is_master or (old is not None and _is_garbage_collection_only(value, old)):
        return
    if write.resource.plural in _ROLES:
        _check_role(authorizer, write, value, old)
    else:
        _check_binding(authorizer, write, value)


def _is_garbage_collection_only(value: KubeObject, old: KubeObject) -> bool:
    """Return whether an update changes only fields of the garbage collector, which has no RBAC permissions itself.

    Kubernetes: pkg/registry/rbac/helpers.go, IsOnlyMutatingGCFields.
    """
    return bool(value["metadata"].get("resourceVersion")) and _without_metadata_fields(
        value, _GARBAGE_COLLECTED_FIELDS
    ) == _without_metadata_fields(old, _GARBAGE_COLLECTED_FIELDS)


def _without_metadata_fields(value: KubeObject, fields: Collection[str]) -> KubeObject:
    metadata = {name: content for name, content in value["metadata"].items() if name not in fields}
    return {**value, "metadata": metadata}


def _check_role(authorizer: Authorizer, write: Write, value: KubeObject, old: KubeObject | None) -> None:
    plural = write.resource.plural
    attributes = Attributes("escalate", RBAC_GROUP, "*", plural, namespace=write.namespace, name=write.name_in_path)
    if authorizer.authorize(write.user, attributes).allowed:
        return
    _check_rules(authorizer, write, value, value.get("rules") or [])
    # An aggregation rule also covers roles that get a matching label later, so it may come to grant anything.
    if any(_is_aggregated(role) for role in (value, old or {})) and _missing_rules(authorizer, write, _ALL_RULES)[0]:
        problem = "must have cluster-admin privileges to use the aggregationRule"
        raise forbidden(write.resource, value["metadata"].get("name", ""), problem)


def _check_binding(authorizer: Authorizer, write: Write, value: KubeObject) -> None:
    reference = value["roleRef"]
    resource = _RESOURCE_OF.get(reference.get("kind", ""), "")
    group, name = reference.get("apiGroup", ""), reference.get("name", "")
    attributes = Attributes("bind", group, "*", resource, namespace=write.namespace, name=name)
    if resource and authorizer.authorize(write.user, attributes).allowed:
        return
    rules, problem = authorizer.rules_of_role(reference, write.namespace)
    if problem:
        raise _unresolved_role_error(write, resource, name, problem)
    _check_rules(authorizer, write, value, rules)


def _unresolved_role_error(write: Write, resource: str, name: str, problem: str) -> Failure:
    """Return kube-apiserver's failure for a binding to a role that cannot be resolved."""
    if not resource:
        return internal_error(problem)
    if resource == "roles" and not write.namespace:
        return bad_request("Namespace parameter required.")
    return not_found(write.resource, name)


def _check_rules(authorizer: Authorizer, write: Write, value: KubeObject, rules: Sequence[KubeObject]) -> None:
    missing, problems = _missing_rules(authorizer, write, rules)
    if not missing:
        return
    groups = " ".join(go_quote(group) for group in write.user.groups)
    permissions = "\n".join(sorted({_rule_text(rule) for rule in _compact_rules(missing)}))
    text = (
        f"user {go_quote(write.user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently "
        f"held:\n{permissions}"
    )
    if problems:
        errors = [_role_error_text(problem, write.resource.plural) for problem in problems]
        text += f"; resolution errors: [{errors[0] if len(errors) == 1 else '[' + ', '.join(errors) + ']'}]"
    raise forbidden(write.resource, value["metadata"].get("name", ""), text)


def _missing_rules(
    authorizer: Authorizer, write: Write, rules: Sequence[KubeObject]
) -> tuple[list[KubeObject], Sequence[str]]:
    """Return the single-permission rules of `rules` that the user lacks, and the problems with its bindings."""
    grants, problems = authorizer.granted_rules(write.user, write.namespace)
    held = [{field: frozenset(values or ()) for field, values in grant.rule.items()} for grant in grants]
    limit = _MAX_COMPARISONS // (_COMPARISON_OVERHEAD + sum(1 + len(own.get("nonResourceURLs", ())) for own in held))
    count = sum(map(_single_rule_count, rules))
    if count > limit:
        problem = f"the rules contain {count} single permissions; at most {limit} can be compared with the user's own"
        raise forbidden(write.resource, write.name, problem)
    parts = itertools.chain.from_iterable(map(_break_down_rule, rules))
    return [part for part in parts if not any(_covers(own, part) for own in held)], problems


def _is_aggregated(role: KubeObject) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _role_error_text(problem: str, plural: str) -> str:
    """Return the error about a missing role as kube-apiserver words it: it names the resource being written."""
    return problem.replace(f"clusterrole.{RBAC_GROUP}", f"{plural}.{RBAC_GROUP}").replace(
        f"role.{RBAC_GROUP}", f"{plural}.{RBAC_GROUP}"
    )


def _single_rule_count(rule: KubeObject) -> int:
    """Return how many rules `_break_down_rule` would yield."""
    groups, resources, names, paths, verbs = (
        len(rule.get(part) or ()) for part in ("apiGroups", "resources", "resourceNames", "nonResourceURLs", "verbs")
    )
    return (groups * resources * max(names, 1) + paths) * verbs


def _break_down_rule(rule: KubeObject) -> Iterator[KubeObject]:
    """Yield rules with one verb and one resource or path each, which together grant the same as `rule`."""
    # Kubernetes: component-helpers/auth/rbac/validation/policy_comparator.go, BreakdownRule.
    verbs = rule.get("verbs") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames") or ()
                yield from [{**part, "resourceNames": [name]} for name in names] if names else [part]
    for path in rule.get("nonResourceURLs") or ():
        for verb in verbs:
            yield {"nonResourceURLs": [path], "verbs": [verb]}


_HeldRule = Mapping[str, frozenset[str]]
"""A rule that the user has, with its lists as sets."""


def _covers(own: _HeldRule, part: KubeObject) -> bool:
    """Return whether the user's rule `own` grants the single permission `part`."""
    # Kubernetes: component-helpers/auth/rbac/validation/policy_comparator.go, ruleCovers.
    if not _contains(own, "verbs", part["verbs"][0]):
        return False
    if "nonResourceURLs" in part:
        # resourceNames apply to resources only; a rule with names grants no access to paths.
        return not own.get("resourceNames") and _covers_path(own, part["nonResourceURLs"][0])
    names = own.get("resourceNames")
    return (
        _contains(own, "apiGroups", part["apiGroups"][0])
        and _covers_resource(own, part["resources"][0])
        and (not names or ("resourceNames" in part and part["resourceNames"][0] in names))
    )


def _contains(own: _HeldRule, field: str, value: str) -> bool:
    values = own.get(field, ())
    return value in values or "*" in values


def _covers_resource(own: _HeldRule, resource: str) -> bool:
    _, slash, subresource = resource.partition("/")
    return _contains(own, "resources", resource) or (bool(slash) and f"*/{subresource}" in own.get("resources", ()))


def _covers_path(own: _HeldRule, path: str) -> bool:
    paths = own.get("nonResourceURLs", ())
    return path in paths or any(each.endswith("*") and path.startswith(each.rstrip("*")) for each in paths)


def _compact_rules(rules: list[KubeObject]) -> list[KubeObject]:
    """Merge the verbs of rules about the same resource; keep rules about paths as they are."""
    joined: dict[tuple[str, ...], KubeObject] = {}
    paths = []
    for rule in rules:
        if "nonResourceURLs" in rule:
            paths.append(rule)
            continue
        key = (*rule["apiGroups"], *rule["resources"], *rule.get("resourceNames", ()))
        before = joined.get(key)
        joined[key] = rule if before is None else {**before, "verbs": [*before["verbs"], *rule["verbs"]]}
    return [*paths, *joined.values()]


def _rule_text(rule: KubeObject) -> str:
    """Format a rule as Go does: {APIGroups:[""], Resources:["pods"], Verbs:["get"]}."""
    parts = []
    for part in _RULE_FIELDS:
        values = rule.get(part)
        if values:
            name = "APIGroups" if part == "apiGroups" else part[0].upper() + part[1:]
            parts.append(f"{name}:[{' '.join(go_quote(value) for value in values)}]")
    return "{" + ", ".join(parts) + "}"
