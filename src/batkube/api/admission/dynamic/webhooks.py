"""Admission webhooks: programs of others that change or judge what is written.

Kubernetes: apiserver/pkg/admission/plugin/webhook, mutating/dispatcher.go and validating/dispatcher.go. Mutating ones
are asked one after the other, in the order of the names of their configurations, and once more if they wish it and
somebody changed the object after them; validating ones all at once. They are asked about creations, updates and
deletions, sub-resources such as `status` included; bindings and evictions are not shown to them.
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
    """One webhook, and about what it is asked."""

    #: Tells it apart from all others.
    identity: tuple[str, str]
    spec: dict[str, Any]
    #: The kind in the version in which it wishes to see objects.
    target: Resource

    @property
    def name(self) -> str:
        """As its configuration calls it."""
        return str(self.spec["name"])


class WebhookCallFailed(Exception):
    """A webhook could not be asked, or gave no proper answer."""


class AdmissionWebhooks:
    """The admission webhooks of one server."""

    def __init__(
        self,
        store: Store,
        inquiries: WebhookCalls,
        expressions: ExpressionCache,
        clients: WebhookRequestBuilder,
        versions: VersionConverter,
    ) -> None:
        self._store = store
        self._webhook_calls = inquiries
        self._expressions = expressions
        self._request_builder = clients
        self._version_converter = versions
        #: How many were sent.
        self._reviews_sent = 0

    def _new_uid(self) -> str:
        """Return an identity for a review: no secret, but another for each."""
        self._reviews_sent += 1
        digest = hashlib.sha256(f"review {self._reviews_sent} at {self._store.version}".encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))

    @property
    def any_configured(self) -> bool:
        """Whether anybody has configured any."""
        return bool(self._store.entries(MUTATING) or self._store.entries(VALIDATING))

    # Changing

    def mutate(self, attempt: AdmissionRequest, turns: ReinvocationContext) -> None:
        """Let webhooks change an object, those whose turn it is."""
        if not self._any_applicable(attempt, MUTATING):
            return
        turns.begin_round(attempt.value)
        for hook in self._matched_webhooks(MUTATING, attempt):
            if turns.should_run(hook.identity):
                changed = self._call_mutating(hook, attempt, turns.round)
                turns.record_run(
                    hook.identity, changed=changed, again=hook.spec.get("reinvocationPolicy") == "IfNeeded"
                )
        turns.end_round(attempt.value)

    def _call_mutating(self, hook: MatchedWebhook, attempt: AdmissionRequest, round_: int) -> bool:
        """Ask a webhook; return whether it has changed the object."""
        _check_dry_run(hook, attempt)
        try:
            reviewed, question = self._review_request(hook, attempt, round_)
            (reply,) = self._webhook_calls.responses([((hook.identity, round_, *_object_identity(attempt)), question)])
            verdict = _admission_response(reply, reviewed, mutates=True)
            operations = _patch_operations(verdict)
        except WebhookCallFailed as problem:
            self._handle_failed_call(hook, problem)
            return False
        attempt.warnings += verdict.warnings
        if not verdict.is_allowed:
            raise verdict.denial(hook.name)
        if not operations:
            return False
        if attempt.is_deletion:
            text = f'admission webhook "{hook.name}" attempted to modify the object, which is not supported'
            raise statuses.internal(f"{text} for this operation")
        return self._apply_patch(hook, attempt, reviewed["request"]["object"], operations)

    def _apply_patch(
        self, hook: MatchedWebhook, attempt: AdmissionRequest, reviewed: KubeObject, operations: list[Any]
    ) -> bool:
        try:
            changed = apply_json_patch(reviewed, operations, checks=False)
        except PatchError as problem:
            raise statuses.internal(str(problem)) from problem
        if not isinstance(changed, dict):
            raise statuses.internal(not_an_object_message(changed))
        if (changed.get("apiVersion"), changed.get("kind")) != (hook.target.api_version, hook.target.kind):
            told = f"{changed.get('apiVersion', '')}, Kind={changed.get('kind', '')}"
            raise statuses.internal(f"converting ({told}) to ({hook.target.schema.go}): unknown conversion")
        value = self._version_converter.decode_and_default(hook.target, changed)
        if "resourceVersion" not in attempt.value.get("metadata", {}):
            # It was only shown.
            value["metadata"].pop("resourceVersion", None)
        if hook.target is not attempt.resource:
            value = self._version_converter.to_version(value, hook.target, attempt.resource)
        if value == attempt.value:
            return False
        attempt.value.clear()
        attempt.value.update(value)
        return True

    # Judging

    def validate(self, attempt: AdmissionRequest) -> None:
        """Refuse what a webhook refuses."""
        if not self._any_applicable(attempt, VALIDATING):
            return
        hooks = list(self._matched_webhooks(VALIDATING, attempt))
        for hook in hooks:
            _check_dry_run(hook, attempt)
        prepared = [self._review_request(hook, attempt, 0) for hook in hooks]
        place = _object_identity(attempt)
        questions = [
            ((hook.identity, 0, *place), question) for hook, (_, question) in zip(hooks, prepared, strict=True)
        ]
        replies = self._webhook_calls.responses(questions)
        for hook, (reviewed, _), reply in zip(hooks, prepared, replies, strict=True):
            try:
                verdict = _admission_response(reply, reviewed, mutates=False)
            except WebhookCallFailed as problem:
                self._handle_failed_call(hook, problem)
                continue
            attempt.warnings += verdict.warnings
            if not verdict.is_allowed:
                raise verdict.denial(hook.name)

    # Both

    def _any_applicable(self, attempt: AdmissionRequest, storage: str) -> bool:
        """Return whether there is anybody to ask; of webhooks and policies themselves nobody is asked."""
        if attempt.resource.group == _GROUP or attempt.subresource in _EXEMPT_SUBRESOURCES:
            return False
        return bool(self._store.entries(storage))

    def _matched_webhooks(self, storage: str, attempt: AdmissionRequest) -> Iterator[MatchedWebhook]:
        """Yield the webhooks that are to be asked about an attempt, as it is now."""
        for _, (configuration, _) in sorted(self._store.entries(storage).items()):
            for spec in configuration.get("webhooks") or ():
                if not selectors_match(spec, attempt):
                    continue
                target = matched_resource(spec, "rules", attempt, self._version_converter)
                if target is not None and self._conditions_hold(spec, attempt, target):
                    yield MatchedWebhook((configuration["metadata"]["uid"], spec["name"]), spec, target)

    def _conditions_hold(self, spec: dict[str, Any], attempt: AdmissionRequest, target: Resource) -> bool:
        """Return whether all conditions hold; one that cannot be evaluated refuses, unless failures are ignored."""
        if not spec.get("matchConditions"):
            return True
        value, old = versioned_objects(attempt, target, self._version_converter)
        try:
            return match_conditions_hold(spec, self._expressions, expression_inputs(attempt, target, value, old, None))
        except EvaluationFailed as problem:
            raise statuses.forbidden(attempt.resource, attempt.name, str(problem)) from problem

    def _review_request(
        self, hook: MatchedWebhook, attempt: AdmissionRequest, round_: int
    ) -> tuple[dict[str, Any], WebhookRequest]:
        """Return the review that a webhook is sent, and the whole question."""
        version = next((each for each in hook.spec["admissionReviewVersions"] if each in REVIEW_VERSIONS), "v1")
        value, old = versioned_objects(attempt, hook.target, self._version_converter)
        identity = (hook.identity, round_, "uid", *_object_identity(attempt))
        uid = self._webhook_calls.once(identity, self._new_uid)
        review = new_review(version, uid, attempt, hook.target, value, old)
        body = msgspec.json.encode(review)
        return review, self._request_builder.build(hook.spec["clientConfig"], body, hook.spec.get("timeoutSeconds", 10))

    @staticmethod
    def _handle_failed_call(hook: MatchedWebhook, problem: WebhookCallFailed) -> None:
        if hook.spec.get("failurePolicy") != "Ignore":
            raise statuses.internal(f'failed calling webhook "{hook.name}": {problem}') from problem


def _object_identity(attempt: AdmissionRequest) -> tuple[str, str, str, str]:
    """Return what tells attempts of one request apart, and an attempt from the same one after somebody else's write."""
    version = "" if attempt.old is None else str(attempt.store.version_of(attempt.resource.storage, attempt.key) or "")
    return attempt.operation, attempt.namespace, attempt.name, version


def _check_dry_run(hook: MatchedWebhook, attempt: AdmissionRequest) -> None:
    if attempt.dry_run and hook.spec.get("sideEffects") not in _DRY_RUN_SIDE_EFFECTS:
        raise statuses.bad_request(f'admission webhook "{hook.name}" does not support dry run')


def _admission_response(reply: WebhookResponse, review: dict[str, Any], *, mutates: bool) -> AdmissionResponse:
    try:
        return parse_response(decode_admission_review(reply, review), review, mutates=mutates)
    except InvalidWebhookResponse as problem:
        raise WebhookCallFailed(f"failed to call webhook: {problem}") from problem
    except ValueError as problem:
        raise WebhookCallFailed(f"received invalid webhook response: {problem}") from problem


def _patch_operations(verdict: AdmissionResponse) -> list[Any]:
    """Return the operations of a JSON patch."""
    if not verdict.patch or not verdict.is_allowed:
        return []
    try:
        operations = parse_operations(parse_json(verdict.patch)[0])
    except (ParseError, PatchError) as problem:
        raise WebhookCallFailed(f"received undecodable patch in webhook response: {problem}") from problem
    if operations and verdict.patch_type != "JSONPatch":
        raise WebhookCallFailed(f'unsupported patch type "{verdict.patch_type}"')
    return operations
