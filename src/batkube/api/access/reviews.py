"""Access reviews: SubjectAccessReview, TokenReview and the like, which are created and answered but never stored.

`kubectl auth can-i` and `kubectl auth whoami` create them, and so do servers that delegate authentication and
authorization to this one (Kubernetes: pkg/registry/authorization, pkg/registry/authentication).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from batkube.api.access.authenticator import AUDIENCE, Authenticator, TokenRejected
from batkube.api.access.rbac_authorizer import Attributes, Authorizer
from batkube.api.access.selector_attributes import unparsable_selectors, validate_selectors
from batkube.api.requests.statuses import Failure, bad_request
from batkube.api.requests.users import User, user_in_groups
from batkube.api.validation import field_errors
from batkube.api.validation.field_errors import FieldError
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant, rfc3339

_AUTHORIZATION = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"

#: The field order of Go's ObjectMeta, in which error messages quote metadata.
_METADATA_ORDER = ("name", "generateName", "namespace", "uid", "labels", "annotations", "managedFields")


class ReviewEvaluator:
    """Evaluates reviews; may edit the objects passed to it."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._evaluators: dict[str, Callable[[KubeObject, User, Instant], KubeObject]] = {
            f"selfsubjectaccessreviews.{_AUTHORIZATION}": self._evaluate_self_subject_access,
            f"subjectaccessreviews.{_AUTHORIZATION}": self._evaluate_subject_access,
            f"localsubjectaccessreviews.{_AUTHORIZATION}": self._evaluate_local_subject_access,
            f"selfsubjectrulesreviews.{_AUTHORIZATION}": self._evaluate_self_subject_rules,
            f"selfsubjectreviews.{_AUTHENTICATION}": self._evaluate_self_subject,
            f"tokenreviews.{_AUTHENTICATION}": self._evaluate_token,
        }

    def is_review(self, resource: Resource) -> bool:
        """Return whether objects of `resource` are reviews."""
        return resource.group_resource in self._evaluators

    def evaluate(self, resource: Resource, review: KubeObject, user: User, now: Instant) -> KubeObject:
        """Return the review that `user` created, with its status filled in; raises Failure."""
        return self._evaluators[resource.group_resource](review, user, now)

    # authorization.k8s.io

    def _evaluate_self_subject_access(self, review: KubeObject, user: User, now: Instant) -> KubeObject:
        spec = review.get("spec") or {}
        _reject_invalid(
            _validate_attributes(spec) + validate_selectors(spec) + _validate_metadata(review, "must be empty")
        )
        return self._with_decision(review, user)

    def _evaluate_subject_access(self, review: KubeObject, user: User, now: Instant) -> KubeObject:
        _reject_invalid(_validate_subject_review(review) + _validate_metadata(review, "must be empty"))
        return self._with_decision(review, _reviewed_user(review["spec"]))

    def _evaluate_local_subject_access(self, review: KubeObject, user: User, now: Instant) -> KubeObject:
        problems = _validate_subject_review(review)
        problems += _validate_metadata(review, "must be empty except for namespace", allowed=("namespace",))
        spec = review.get("spec") or {}
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if resource is not None and resource.get("namespace", "") != review["metadata"].get("namespace", ""):
            field, namespace = "spec.resourceAttributes.namespace", resource.get("namespace", "")
            problems.append(field_errors.invalid(field, namespace, "must match metadata.namespace"))
        if path is not None:
            problem = "disallowed on this kind of request"
            problems.append(field_errors.invalid("spec.nonResourceAttributes", _internal_attributes(path), problem))
        _reject_invalid(problems)
        return self._with_decision(review, _reviewed_user(spec))

    def _with_decision(self, review: KubeObject, subject: User) -> KubeObject:
        spec = review["spec"]
        decision = self._authorizer.authorize(subject, _reviewed_attributes(spec))
        status: KubeObject = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        if problem := unparsable_selectors(spec):
            status["evaluationError"] = problem
        review["status"] = status
        return review

    def _evaluate_self_subject_rules(self, review: KubeObject, user: User, now: Instant) -> KubeObject:
        namespace = (review.get("spec") or {}).get("namespace", "")
        if not namespace:
            raise bad_request("no namespace on request")
        grants, problems = self._authorizer.granted_rules(user, namespace)
        rules = [grant.rule for grant in grants]
        status: KubeObject = {
            "resourceRules": [_select_fields(rule, _RESOURCE_RULE) for rule in rules if rule.get("resources")],
            "nonResourceRules": [_select_fields(rule, _PATH_RULE) for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }
        if problems:
            status["evaluationError"] = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        return {
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "metadata": {},
            "spec": {},
            "status": status,
        }

    # authentication.k8s.io

    def _evaluate_self_subject(self, review: KubeObject, user: User, now: Instant) -> KubeObject:
        return {
            "kind": review["kind"],
            "apiVersion": review["apiVersion"],
            "metadata": {"creationTimestamp": rfc3339(now)},
            "status": {"userInfo": _user_info_of(user)},
        }

    def _evaluate_token(self, review: KubeObject, user: User, now: Instant) -> KubeObject:
        spec = review.get("spec") or {}
        token = spec.get("token", "")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        problem = "invalid bearer token"
        try:
            identity = self._authenticator.authenticate_token(token, spec.get("audiences") or (AUDIENCE,))
        except TokenRejected as refusal:
            identity, problem = None, f"[{problem}, {refusal}]"
        if identity is None:
            review["status"] = {"user": {}, "error": problem}
        else:
            audiences = list(identity.audiences)
            review["status"] = {"authenticated": True, "user": _user_info_of(identity.user), "audiences": audiences}
        return review


_RESOURCE_RULE = ("verbs", "apiGroups", "resources", "resourceNames")
_PATH_RULE = ("verbs", "nonResourceURLs")


def _select_fields(rule: KubeObject, fields: tuple[str, ...]) -> KubeObject:
    return {field: rule[field] for field in fields if rule.get(field)}


def _user_info_of(user: User) -> KubeObject:
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
    set_fields: KubeObject = {key: value for key, value in info.items() if value}
    if user.extra:
        set_fields["extra"] = {key: list(values) for key, values in user.extra.items()}
    return set_fields


def _reviewed_user(spec: KubeObject) -> User:
    """Return the user that a review is about, with exactly the groups that it names."""
    return user_in_groups(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()))


def _reviewed_attributes(spec: KubeObject) -> Attributes:
    path = spec.get("nonResourceAttributes")
    resource = spec.get("resourceAttributes")
    if resource is None:
        assert path is not None, "validation rejects reviews without attributes"
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    names = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return Attributes(**{name: resource.get(name, "") for name in names})


# Validation


def _validate_attributes(spec: KubeObject) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        problem = "cannot be specified in combination with resourceAttributes"
        return [field_errors.invalid("spec.nonResourceAttributes", _internal_attributes(path), problem)]
    if resource is None and path is None:
        problem = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [field_errors.invalid("spec.resourceAttributes", None, problem)]
    return []


def _validate_subject_review(review: KubeObject) -> list[FieldError]:
    spec = review.get("spec") or {}
    problems = _validate_attributes(spec)
    if not spec.get("user") and not spec.get("groups"):
        problems.append(field_errors.invalid("spec.user", "", "at least one of user or group must be specified"))
    return problems + validate_selectors(spec)


def _validate_metadata(review: KubeObject, problem: str, allowed: tuple[str, ...] = ()) -> list[FieldError]:
    metadata = review.get("metadata") or {}
    if all(key in (*allowed, "managedFields") or not value for key, value in metadata.items()):
        return []
    ordered = {key: metadata[key] for key in (*_METADATA_ORDER, *metadata) if key in metadata}
    return [field_errors.invalid("metadata", field_errors.Verbatim(msgspec.json.encode(ordered).decode()), problem)]


def _internal_attributes(path: KubeObject) -> KubeObject:
    """Return non-resource attributes with the field names of Kubernetes' internal type, which has no JSON names."""
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


def _reject_invalid(problems: list[FieldError]) -> None:
    """Raise a 422 if there are problems. As in kube-apiserver, its message does not name the kind."""
    if not problems:
        return
    messages = [f"{problem.field}: {problem.message}" for problem in problems]
    message = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    causes = [msgspec.to_builtins(problem) for problem in problems]
    details = {"group": _AUTHORIZATION, "causes": causes}
    raise Failure(422, "Invalid", f'.{_AUTHORIZATION} "" is invalid: {message}', details)
