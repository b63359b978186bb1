"""Webhooks and admission policies for the fuzzer: valid ones, and mutated answers of webhooks."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

from batkube.api.requests.webhooks.calls import WebhookRequest, WebhookResponse
from conformance.mutating import worse_bytes, worse_value
from conformance.placeholders import Json

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
MUTATING_POLICIES = "admissionregistration.k8s.io/v1beta1"
MAPS = "/api/v1/namespaces/default/configmaps"
_RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps", "pods"]}
#: The variables of expressions in policies.
VARIABLES = ("object", "oldObject", "request", "params", "namespaceObject", "variables.v", "authorizer", "object.data")


def config_map(chance: random.Random) -> dict[str, Any]:
    """Return a ConfigMap with some data."""
    data = {str(number): "x" * chance.choice((0, 1, 1000)) for number in range(chance.choice((0, 1, 5, 50)))}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": {"a": "b"}}, "data": data}


def webhook_configuration(kind: str, chance: random.Random) -> dict[str, Any]:
    """Return a configuration with one or two webhooks."""
    hooks = [
        {
            "name": f"hook{number}.fuzz.io",
            "clientConfig": {"url": chance.choice(("https://fuzz.io/x", "https://[::1]:99999", "https://a:0/b"))},
            "rules": [_RULE],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "failurePolicy": chance.choice(("Fail", "Ignore")),
            **({"reinvocationPolicy": "IfNeeded"} if kind == "Mutating" else {}),
        }
        for number in range(chance.randrange(1, 3))
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": "fuzz"},
        "webhooks": hooks,
    }


class HostileWebhook:
    """A webhook that answers every review, mostly with invalid answers."""

    def __init__(self, chance: random.Random, operation: Callable[[Json], Json]) -> None:
        """`operation` returns an operation of a JSON patch for an object."""
        self._chance = chance
        self._operation = operation
        self.last = b""

    def answer(self, request: WebhookRequest) -> WebhookResponse:
        """Return the response to an AdmissionReview or a ConversionReview."""
        chance = self._chance
        review = json.loads(request.body)
        response = self._converted(review) if review["kind"] == "ConversionReview" else self._admitted(review)
        answer: Json = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        if chance.random() < 0.7:
            answer = worse_value(answer, chance)
        body = json.dumps(answer).encode("utf-8", "surrogatepass")
        self.last = worse_bytes(body, chance) if chance.random() < 0.15 else body
        return WebhookResponse(chance.choice((200, 200, 200, 500, 0)), self.last)

    def _admitted(self, review: dict[str, Any]) -> dict[str, Any]:
        chance, request = self._chance, review["request"]
        response: dict[str, Any] = {"uid": request["uid"], "allowed": chance.random() < 0.7}
        if chance.random() < 0.6:
            operations: Json = [self._operation(request["object"]) for _ in range(chance.randrange(1, 4))]
            patch = json.dumps(operations).encode("utf-8", "surrogatepass")
            response |= {"patch": base64.b64encode(patch).decode(), "patchType": "JSONPatch"}
        status = {"code": chance.choice((0, 403, 10**30)), "message": "no", "reason": "x", "details": {"causes": []}}
        return {**response, "status": status, "warnings": ["a", "é\r\n" * 99], "auditAnnotations": {"a": "b"}}

    def _converted(self, review: dict[str, Any]) -> dict[str, Any]:
        request = review["request"]
        objects = [{**each, "apiVersion": request["desiredAPIVersion"]} for each in request["objects"]]
        result = {"status": self._chance.choice(("Success", "Success", "Failure")), "message": "no"}
        return {"uid": request["uid"], "result": result, "convertedObjects": objects}


def converted_definition(plural: str) -> dict[str, Any]:
    """Return a definition of two versions with a conversion webhook."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
    webhook = {"clientConfig": {"url": "https://fuzz.io/convert"}, "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.fuzz.io"},
        "spec": {
            "group": "fuzz.io",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def validating_policy(expression: Callable[[int], str], chance: random.Random) -> dict[str, Any]:
    """Return a policy with random expressions; `expression` returns one of a given depth."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "fuzz"},
        "spec": {
            "failurePolicy": chance.choice(("Fail", "Ignore")),
            "matchConstraints": {"resourceRules": [_RULE]},
            "variables": [{"name": "v", "expression": expression(2)}],
            "matchConditions": [{"name": "m", "expression": chance.choice(("true", expression(2)))}],
            "validations": [
                {"expression": expression(3), "messageExpression": expression(2)} for _ in range(chance.randrange(1, 4))
            ],
            "auditAnnotations": [{"key": "k", "valueExpression": expression(1)}],
        },
    }


def mutating_policy(expression: Callable[[int], str], chance: random.Random) -> dict[str, Any]:
    """Return a policy that applies a configuration or a JSON patch of random values."""
    value = expression(2)
    apply = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": f"Object{{data: {value}}}"}}
    operation = f'[JSONPatch{{op: "add", path: "/data/" + string({expression(1)}), value: {value}}}]'
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": operation}}
    return {
        "apiVersion": MUTATING_POLICIES,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "fuzz"},
        "spec": {
            "failurePolicy": chance.choice(("Fail", "Ignore")),
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": {"resourceRules": [_RULE]},
            "variables": [{"name": "v", "expression": expression(1)}],
            "mutations": [chance.choice((apply, patch))],
        },
    }


def binding_of(policy: dict[str, Any]) -> dict[str, Any]:
    """Return the binding of a policy, for all requests."""
    spec: dict[str, Any] = {"policyName": "fuzz"}
    if policy["kind"] == "ValidatingAdmissionPolicy":
        spec["validationActions"] = ["Deny", "Audit"]
    return {
        "apiVersion": policy["apiVersion"],
        "kind": f"{policy['kind']}Binding",
        "metadata": {"name": "fuzz"},
        "spec": spec,
    }
