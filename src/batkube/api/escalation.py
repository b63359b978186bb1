"""Nobody can grant rights that it does not have.

Whoever writes a role must have every right in it, or the right to `escalate`; whoever writes a binding must have every
right of the role, or the right to `bind` it (Kubernetes: pkg/registry/rbac/*/policybased, component-helpers
auth/rbac/validation).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batkube.api.authentication import User
from batkube.api.authorization import GROUP, Attributes, Authorizer
from batkube.api.statuses import Failure
from batkube.cluster.go_text import go_quote
from batkube.cluster.store import KubeObject

_ROLES = ("roles", "clusterroles")
_RESOURCE_OF = {"Role": "roles", "ClusterRole": "clusterroles"}
_PARTS = ("apiGroups", "resources", "nonResourceURLs", "resourceNames", "verbs")


def refuse_escalation(authorizer: Authorizer, user: User, plural: str, value: KubeObject, namespace: str) -> None:
    """Raise a 403 if `user`, who writes a role or binding (`plural` says which), would grant what it does not have."""
    if user.is_master:
        return
    name = value["metadata"].get("name", "")
    if plural in _ROLES:
        wish = Attributes("escalate", GROUP, "*", plural, namespace=namespace, name=name)
        rules, problem = value.get("rules") or [], ""
    else:
        reference = value["roleRef"]
        resource = _RESOURCE_OF.get(reference.get("kind", ""), "")
        wish = Attributes("bind", GROUP, "*", resource, namespace=namespace, name=reference.get("name", ""))
        rules, problem = authorizer.rules_of(reference, namespace)
    if authorizer.allows(user, wish).allowed:
        return
    if problem:
        role = value["roleRef"]["name"]
        raise Failure(404, "NotFound", _misnamed(problem, plural), {"name": role, "group": GROUP, "kind": plural})
    grants, problems = authorizer.grants(user, namespace)
    held = [grant.rule for grant in grants]
    missing = [part for rule in rules for part in _broken_down(rule) if not any(_covers(own, part) for own in held)]
    if missing:
        raise _refusal(user, plural, name, missing, [_misnamed(problem, plural) for problem in problems])


def _misnamed(problem: str, plural: str) -> str:
    """Say of a missing role what the real server says here: as if what is written were missing."""
    return problem.replace(f"clusterrole.{GROUP}", f"{plural}.{GROUP}").replace(f"role.{GROUP}", f"{plural}.{GROUP}")


def _refusal(user: User, plural: str, name: str, missing: list[KubeObject], problems: list[str]) -> Failure:
    groups = " ".join(go_quote(group) for group in user.groups)
    rights = "\n".join(sorted({_shown(rule): None for rule in _compacted(missing)}))
    message = (
        f"{plural}.{GROUP} {go_quote(name)} is forbidden: user {go_quote(user.name)} (groups=[{groups}]) is attempting "
        f"to grant RBAC permissions not currently held:\n{rights}"
    )
    if problems:
        shown = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        message = f"{message}; resolution errors: [{shown}]"
    return Failure(403, "Forbidden", message, {"name": name, "group": GROUP, "kind": plural})


def _broken_down(rule: KubeObject) -> Iterator[KubeObject]:
    """Yield rules of one verb and one thing each, which together are `rule`."""
    verbs = rule.get("verbs") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                one = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames") or ()
                yield from [{**one, "resourceNames": [name]} for name in names] if names else [one]
    for path in rule.get("nonResourceURLs") or ():
        for verb in verbs:
            yield {"nonResourceURLs": [path], "verbs": [verb]}


def _covers(own: KubeObject, part: KubeObject) -> bool:
    """Return whether a rule allows all that a rule of one verb and one thing does."""
    return (
        _has(own, "verbs", part)
        and _has(own, "apiGroups", part)
        and all(_has_resource(own.get("resources") or (), resource) for resource in part.get("resources") or ())
        and all(_has_path(own, path) for path in part.get("nonResourceURLs") or ())
        and _has_name(own.get("resourceNames"), part.get("resourceNames"))
    )


def _has(own: KubeObject, field: str, part: KubeObject) -> bool:
    values = own.get(field) or ()
    return "*" in values or all(value in values for value in part.get(field) or ())


def _has_resource(own: Sequence[str], resource: str) -> bool:
    return "*" in own or resource in own or ("/" in resource and "*/" + resource.partition("/")[2] in own)


def _has_path(own: KubeObject, path: str) -> bool:
    return any(
        path == mine or (mine.endswith("*") and path.startswith(mine.rstrip("*")))
        for mine in own.get("nonResourceURLs") or ()
    )


def _has_name(own: list[str] | None, part: list[str] | None) -> bool:
    return not own or (bool(part) and all(name in own for name in part or ()))


def _compacted(rules: list[KubeObject]) -> list[KubeObject]:
    """Join the verbs of rules about the same thing; paths stay as they are."""
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


def _shown(rule: KubeObject) -> str:
    """Write a rule as Go does: {APIGroups:[""], Resources:["pods"], Verbs:["get"]}."""
    parts = []
    for part in _PARTS:
        values = rule.get(part)
        if values:
            name = "APIGroups" if part == "apiGroups" else part[0].upper() + part[1:]
            parts.append(f"{name}:[{' '.join(go_quote(value) for value in values)}]")
    return "{" + ", ".join(parts) + "}"
