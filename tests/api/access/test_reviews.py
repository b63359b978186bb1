"""Access reviews."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from batkube.api.access.authenticator import AUDIENCE, Authenticator
from batkube.api.access.bootstrap_roles import bootstrap_policy
from batkube.api.access.rbac_authorizer import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, Authorizer
from batkube.api.access.reviews import ReviewEvaluator
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User, authenticated_user
from batkube.cluster.kinds import KindTable
from batkube.cluster.store import Key, KubeObject, Store
from batkube.kernel.instants import START
from conformance import CASES

KINDS = KindTable.builtin()
ADMIN = authenticated_user("admin", "1", ("system:masters",))
ALICE = authenticated_user("alice", "2", ())


@pytest.fixture(scope="module")
def reviews() -> ReviewEvaluator:
    store = Store()
    storage = {"ClusterRole": CLUSTER_ROLES, "ClusterRoleBinding": CLUSTER_ROLE_BINDINGS}
    for value in bootstrap_policy():
        if value["kind"] in storage:
            store.create(storage[value["kind"]], [Key(value["metadata"]["name"])], [value], START)
    return ReviewEvaluator(Authenticator({"alice-token": ALICE}), Authorizer(store))


def ask(reviews: ReviewEvaluator, group: str, plural: str, user: User = ADMIN, **body: dict[str, Any]) -> KubeObject:
    resource = KINDS.resource(f"{group}.k8s.io", "v1", plural)
    assert resource is not None
    assert reviews.is_review(resource)
    review = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}, **copy.deepcopy(body)}
    return reviews.evaluate(resource, review, user, START)


def test_an_access_review_names_the_binding_that_allows_it(reviews: ReviewEvaluator) -> None:
    spec = {
        "resourceAttributes": {"verb": "create", "group": "authentication.k8s.io", "resource": "selfsubjectreviews"}
    }

    answer = ask(reviews, "authorization", "selfsubjectaccessreviews", ALICE, spec=spec)

    source = 'ClusterRoleBinding "system:basic-user" of ClusterRole "system:basic-user" to Group "system:authenticated"'
    assert answer["status"] == {"allowed": True, "reason": f"RBAC: allowed by {source}"}


def test_the_subject_of_a_review_has_exactly_the_named_groups(reviews: ReviewEvaluator) -> None:
    path = {"nonResourceAttributes": {"path": "/api", "verb": "get"}}

    without = ask(reviews, "authorization", "subjectaccessreviews", spec={"user": "bob", **path})
    within = ask(
        reviews, "authorization", "subjectaccessreviews", spec={"user": "b", "groups": ["system:authenticated"], **path}
    )

    assert without["status"] == {"allowed": False}
    assert within["status"]["allowed"]


def test_a_local_review_is_limited_to_its_namespace(reviews: ReviewEvaluator) -> None:
    spec = {"user": "bob", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "other"}}

    with pytest.raises(Failure) as refusal:
        ask(reviews, "authorization", "localsubjectaccessreviews", metadata={"namespace": "d"}, spec=spec)

    assert refusal.value.message == (
        '.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "other": must match '
        "metadata.namespace"
    )


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (
            {"metadata": {"name": "x"}, "spec": {"nonResourceAttributes": {"path": "/"}}},
            'metadata: Invalid value: {"name":"x"}: must be empty',
        ),
        (
            {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}, "resourceAttributes": {}}},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: cannot be specified in combination '
            "with resourceAttributes",
        ),
        (
            {"spec": {"resourceAttributes": {"labelSelector": {}}}},
            "spec.resourceAttributes.labelSelector.requirements: Required value: when "
            "spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required",
        ),
        (
            {"spec": {"resourceAttributes": {"fieldSelector": {"requirements": [{"key": "a", "operator": "In"}]}}}},
            "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be specified when "
            "`operator` is 'In' or 'NotIn'",
        ),
    ],
)
def test_an_invalid_review_is_rejected(reviews: ReviewEvaluator, body: dict[str, Any], problem: str) -> None:
    with pytest.raises(Failure) as refusal:
        ask(reviews, "authorization", "selfsubjectaccessreviews", **body)

    assert refusal.value.message == f'.authorization.k8s.io "" is invalid: {problem}'


def test_an_unparsable_selector_is_ignored_and_reported(reviews: ReviewEvaluator) -> None:
    selectors = {"labelSelector": {"rawSelector": "a in"}, "fieldSelector": {"rawSelector": "metadata.name=x"}}

    answer = ask(
        reviews,
        "authorization",
        "selfsubjectaccessreviews",
        spec={"resourceAttributes": {"verb": "list", "resource": "pods", **selectors}},
    )

    problem = "spec.resourceAttributes.labelSelector ignored due to parse error"
    assert answer["status"] == {"allowed": True, "evaluationError": problem}


def test_a_rules_review_lists_all_rules_of_the_user(reviews: ReviewEvaluator) -> None:
    answer = ask(reviews, "authorization", "selfsubjectrulesreviews", ALICE, spec={"namespace": "d"})

    status = answer["status"]
    assert {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]} in status[
        "resourceRules"
    ]
    assert any("/api/*" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    assert status["incomplete"] is False
    assert answer["spec"] == {}


def test_a_token_is_reviewed(reviews: ReviewEvaluator) -> None:
    good = ask(reviews, "authentication", "tokenreviews", spec={"token": "alice-token"})
    elsewhere = ask(reviews, "authentication", "tokenreviews", spec={"token": "alice-token", "audiences": ["x"]})

    user = {"username": "alice", "uid": "2", "groups": ["system:authenticated"]}
    assert good["status"] == {"authenticated": True, "user": user, "audiences": [AUDIENCE]}
    assert elsewhere["status"] == {"user": {}, "error": "invalid bearer token"}


def test_answers_to_reviews_match_the_recorded_ones(reviews: ReviewEvaluator) -> None:
    compared = 0
    for name in ("access-reviews", "subject-reviews"):
        case = json.loads((CASES / f"auth/{name}.json").read_text())
        for step in case["steps"]:
            request, recorded = step["request"], step["response"]["body"]
            parts = request["path"].split("/")
            resource = KINDS.resource(parts[2], "v1", parts[-1]) if parts[1] == "apis" else None
            if resource is None or request["method"] != "POST" or request["body"].get("kind") != resource.kind:
                continue
            review = {"metadata": {}, **request["body"]}
            user = ALICE if request.get("auth") == "user" else ADMIN
            try:
                answer: dict[str, Any] = reviews.evaluate(resource, review, user, START)
            except Failure as failure:
                answer = failure.status()
            for body in (answer, recorded):
                body["metadata"].pop("managedFields", None)
                body["metadata"].pop("creationTimestamp", None)
            assert answer == recorded
            compared += 1
    assert compared >= 14
