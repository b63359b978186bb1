"""Admission webhooks: HTTP servers outside the simulation that change or reject requests.

Mutating webhooks are called one after the other, in the order of their configurations' names, and again if a later
plugin has changed the object (`reinvocation`). Validating webhooks are called concurrently. Webhooks see creates,
updates and deletions, including subresources such as `status`, but no bindings and evictions.
Kubernetes: apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from batkube.api.admission.dynamic.admission_reviews import (
    REVIEW_VERSIONS,
    AdmissionResponse,
    decode_admission_review,
    new_review,
    parse_response,
)
from batkube.api.admission.dynamic.expressions import (
    EvaluationFailed,
    ExpressionCache,
    expression_inputs,
    match_conditions_hold,
)
from batkube.api.admission.dynamic.matching import (
    VersionConverter,
    matched_resource,
    selectors_match,
    versioned_objects,
)
from batkube.api.admission.dynamic.reinvocation import ReinvocationContext
from batkube.api.admission.request import AdmissionRequest
from batkube.api.decoding.objects import ParseError, parse_json
from batkube.api.patches.json_patches import PatchError, apply_json_patch, parse_operations
from batkube.api.requests import statuses
from batkube.api.requests.webhooks.calls import WebhookCalls, WebhookRequest, WebhookResponse
from batkube.api.requests.webhooks.request_builder import WebhookRequestBuilder
from batkube.api.requests.webhooks.responses import InvalidWebhookResponse, not_an_object_message
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject, Store

_GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = f"mutatingwebhookconfigurations.{_GROUP}", f"validatingwebhookconfigurations.{_GROUP}"
_DRY_RUN_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_EXEMPT_SUBRESOURCES = ("binding", "eviction")


class MatchedWebhook(NamedTuple):
    """A webhook whose rules match a request."""

    #: The uid of the configuration and the name of the webhook.
    identity: tuple[str, str]
    spec: dict[str, Any]
    #: The resource in the version in which the webhook sees the objects.
    target: Resource

    @property
    def name(self) -> str:
        """The name in the configuration."""
        return str(self.spec["name"])


class WebhookCallFailed(Exception):
    """A webhook could not be called, or sent an invalid response."""


class AdmissionWebhooks:
    """The admission webhooks of one server."""

    #: The kinds that configure them.
    configured_by = frozenset({MUTATING, VALIDATING})

    def __init__(
        self,
        store: Store,
        calls: WebhookCalls,
        expressions: ExpressionCache,
        request_builder: WebhookRequestBuilder,
        versions: VersionConverter,
    ) -> None:
        self._store = store
        self._webhook_calls = calls
        self._expressions = expressions
        self._request_builder = request_builder
        self._version_converter = versions
        #: Number of reviews built so far.
        self._reviews_sent = 0

    def _new_uid(self) -> str:
        """Return a new uid for a review, unique and reproducible."""
        self._reviews_sent += 1
        digest = hashlib.sha256(f"review {self._reviews_sent} at {self._store.version}".encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))

    # Mutating webhooks

    def mutate(self, request: AdmissionRequest, context: ReinvocationContext) -> None:
        """Call the mutating webhooks that are due in this round; raises Failure."""
        if not self._any_applicable(request, MUTATING):
            return
        context.begin_round(request.value)
        for hook in self._matched_webhooks(MUTATING, request):
            if context.should_run(hook.identity):
                changed = self._call_mutating(hook, request, context.round)
                context.record_run(
                    hook.identity, changed=changed, reinvoke=hook.spec.get("reinvocationPolicy") == "IfNeeded"
                )
        context.end_round(request.value)

    def _call_mutating(self, hook: MatchedWebhook, request: AdmissionRequest, round_: int) -> bool:
        """Call a mutating webhook; return whether it has changed the object."""
        _check_dry_run(hook, request)
        try:
            reviewed, call = self._review_request(hook, request, round_)
            (http_response,) = self._webhook_calls.responses(
                [((hook.identity, round_, *_object_identity(request)), call)]
            )
            response = _admission_response(http_response, reviewed, mutates=True)
            operations = _patch_operations(response)
        except WebhookCallFailed as problem:
            self._handle_failed_call(hook, problem)
            return False
        request.warnings += response.warnings
        if not response.is_allowed:
            raise response.denial(hook.name)
        if not operations:
            return False
        if request.is_deletion:
            text = f'admission webhook "{hook.name}" attempted to modify the object, which is not supported'
            raise statuses.internal(f"{text} for this operation")
        return self._apply_patch(hook, request, reviewed["request"]["object"], operations)

    def _apply_patch(
        self, hook: MatchedWebhook, request: AdmissionRequest, reviewed: KubeObject, operations: list[Any]
    ) -> bool:
        try:
            changed = apply_json_patch(reviewed, operations, checks=False)
        except PatchError as problem:
            raise statuses.internal(str(problem)) from problem
        if not isinstance(changed, dict):
            raise statuses.internal(not_an_object_message(changed))
        if (changed.get("apiVersion"), changed.get("kind")) != (hook.target.api_version, hook.target.kind):
            actual = f"{changed.get('apiVersion', '')}, Kind={changed.get('kind', '')}"
            raise statuses.internal(f"converting ({actual}) to ({hook.target.schema.go}): unknown conversion")
        value = self._version_converter.decode_and_default(hook.target, changed)
        if "resourceVersion" not in request.value.get("metadata", {}):
            # It was added for the review only (`versioned_objects`).
            value["metadata"].pop("resourceVersion", None)
        if hook.target is not request.resource:
            value = self._version_converter.to_version(value, hook.target, request.resource)
        if value == request.value:
            return False
        request.value.clear()
        request.value.update(value)
        return True

    # Validating webhooks

    def validate(self, request: AdmissionRequest) -> None:
        """Call the validating webhooks; raises Failure if one denies the request."""
        if not self._any_applicable(request, VALIDATING):
            return
        hooks = list(self._matched_webhooks(VALIDATING, request))
        for hook in hooks:
            _check_dry_run(hook, request)
        prepared = [self._review_request(hook, request, 0) for hook in hooks]
        identity = _object_identity(request)
        calls = [((hook.identity, 0, *identity), call) for hook, (_, call) in zip(hooks, prepared, strict=True)]
        responses = self._webhook_calls.responses(calls)
        for hook, (reviewed, _), http_response in zip(hooks, prepared, responses, strict=True):
            try:
                response = _admission_response(http_response, reviewed, mutates=False)
            except WebhookCallFailed as problem:
                self._handle_failed_call(hook, problem)
                continue
            request.warnings += response.warnings
            if not response.is_allowed:
                raise response.denial(hook.name)

    # Common parts

    def _any_applicable(self, request: AdmissionRequest, storage: str) -> bool:
        """Return whether any webhook can apply; webhook configurations and policies are exempt."""
        if request.resource.group == _GROUP or request.subresource in _EXEMPT_SUBRESOURCES:
            return False
        return bool(self._store.entries(storage))

    def _matched_webhooks(self, storage: str, request: AdmissionRequest) -> Iterator[MatchedWebhook]:
        """Yield the webhooks that match a request in its current state, in the order of their configurations' names."""
        for _, (configuration, _) in sorted(self._store.entries(storage).items()):
            for spec in configuration.get("webhooks") or ():
                if not selectors_match(spec, request):
                    continue
                target = matched_resource(spec, "rules", request, self._version_converter)
                if target is not None and self._conditions_hold(spec, request, target):
                    yield MatchedWebhook((configuration["metadata"]["uid"], spec["name"]), spec, target)

    def _conditions_hold(self, spec: dict[str, Any], request: AdmissionRequest, target: Resource) -> bool:
        """Return whether the match conditions hold; raises a 403 if they cannot be evaluated and failures are fatal."""
        if not spec.get("matchConditions"):
            return True
        value, old = versioned_objects(request, target, self._version_converter)
        try:
            return match_conditions_hold(spec, self._expressions, expression_inputs(request, target, value, old, None))
        except EvaluationFailed as problem:
            raise statuses.forbidden(request.resource, request.name, str(problem)) from problem

    def _review_request(
        self, hook: MatchedWebhook, request: AdmissionRequest, round_: int
    ) -> tuple[dict[str, Any], WebhookRequest]:
        """Return the AdmissionReview for a webhook, and the HTTP request that carries it."""
        version = next((each for each in hook.spec["admissionReviewVersions"] if each in REVIEW_VERSIONS), "v1")
        value, old = versioned_objects(request, hook.target, self._version_converter)
        identity = (hook.identity, round_, "uid", *_object_identity(request))
        uid = self._webhook_calls.once(identity, self._new_uid)
        review = new_review(version, uid, request, hook.target, value, old)
        body = msgspec.json.encode(review)
        return review, self._request_builder.build(hook.spec["clientConfig"], body, hook.spec.get("timeoutSeconds", 10))

    @staticmethod
    def _handle_failed_call(hook: MatchedWebhook, problem: WebhookCallFailed) -> None:
        if hook.spec.get("failurePolicy") != "Ignore":
            raise statuses.internal(f'failed calling webhook "{hook.name}": {problem}') from problem


def _object_identity(request: AdmissionRequest) -> tuple[str, str, str, str]:
    """Return a key of the write within the client's request; it changes if another client's write intervenes."""
    version = "" if request.old is None else str(request.store.version_of(request.resource.storage, request.key) or "")
    return request.operation, request.namespace, request.name, version


def _check_dry_run(hook: MatchedWebhook, request: AdmissionRequest) -> None:
    if request.dry_run and hook.spec.get("sideEffects") not in _DRY_RUN_SIDE_EFFECTS:
        raise statuses.bad_request(f'admission webhook "{hook.name}" does not support dry run')


def _admission_response(http_response: WebhookResponse, review: dict[str, Any], *, mutates: bool) -> AdmissionResponse:
    try:
        return parse_response(decode_admission_review(http_response, review), review, mutates=mutates)
    except InvalidWebhookResponse as problem:
        raise WebhookCallFailed(f"failed to call webhook: {problem}") from problem
    except ValueError as problem:
        raise WebhookCallFailed(f"received invalid webhook response: {problem}") from problem


def _patch_operations(response: AdmissionResponse) -> list[Any]:
    """Return the operations of the response's JSON patch."""
    if not response.patch or not response.is_allowed:
        return []
    try:
        operations = parse_operations(parse_json(response.patch)[0])
    except (ParseError, PatchError) as problem:
        raise WebhookCallFailed(f"received undecodable patch in webhook response: {problem}") from problem
    if operations and response.patch_type != "JSONPatch":
        raise WebhookCallFailed(f'unsupported patch type "{response.patch_type}"')
    return operations
