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

from batkube.api.admission.admission_reviews import (
    REVIEW_VERSIONS,
    WebhookVerdict,
    answered_review,
    read_response,
    review_of,
)
from batkube.api.admission.attempts import Attempt
from batkube.api.admission.conditions import Expressions, NoValue, conditions_hold, seen_by_expressions
from batkube.api.admission.policy_matching import KindVersions, selectors_match, shown_objects, target_of
from batkube.api.admission.reinvocations import ChangeRounds
from batkube.api.decoding.objects import ParseError, parse_json
from batkube.api.patches.json_patches import PatchError, json_patch, unchecked_operations
from batkube.api.requests import statuses
from batkube.api.requests.outside import Inquiries, Question, Reply
from batkube.api.requests.webhook_answers import BadAnswer, no_object
from batkube.api.requests.webhook_clients import WebhookClients
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject, Store

_GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = f"mutatingwebhookconfigurations.{_GROUP}", f"validatingwebhookconfigurations.{_GROUP}"
_DRY_RUN = ("None", "NoneOnDryRun")
_NOT_SHOWN = ("binding", "eviction")


class Hook(NamedTuple):
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


class NotAsked(Exception):
    """A webhook could not be asked, or gave no proper answer."""


class Webhooks:
    """The admission webhooks of one server."""

    def __init__(
        self,
        store: Store,
        inquiries: Inquiries,
        expressions: Expressions,
        clients: WebhookClients,
        versions: KindVersions,
    ) -> None:
        self._store = store
        self._inquiries = inquiries
        self._expressions = expressions
        self._clients = clients
        self._versions = versions
        #: How many were sent.
        self._reviews = 0

    def _new_uid(self) -> str:
        """Return an identity for a review: no secret, but another for each."""
        self._reviews += 1
        digest = hashlib.sha256(f"review {self._reviews} at {self._store.version}".encode()).digest()
        return str(uuid.UUID(bytes=digest[:16], version=4))

    @property
    def are_there(self) -> bool:
        """Whether anybody has configured any."""
        return bool(self._store.entries(MUTATING) or self._store.entries(VALIDATING))

    # Changing

    def mutate(self, attempt: Attempt, turns: ChangeRounds) -> None:
        """Let webhooks change an object, those whose turn it is."""
        if not self._concerns(attempt, MUTATING):
            return
        turns.begin(attempt.value)
        for hook in self._hooks(MUTATING, attempt):
            if turns.is_due(hook.identity):
                changed = self._change(hook, attempt, turns.round)
                turns.acted(hook.identity, changed=changed, again=hook.spec.get("reinvocationPolicy") == "IfNeeded")
        turns.end(attempt.value)

    def _change(self, hook: Hook, attempt: Attempt, round_: int) -> bool:
        """Ask a webhook; return whether it has changed the object."""
        _check_dry_run(hook, attempt)
        try:
            reviewed, question = self._question(hook, attempt, round_)
            (reply,) = self._inquiries.replies([((hook.identity, round_, *_place(attempt)), question)])
            verdict = _verdict(reply, reviewed, mutates=True)
            operations = _operations(verdict)
        except NotAsked as problem:
            self._not_asked(hook, problem)
            return False
        attempt.warnings += verdict.warnings
        if not verdict.is_allowed:
            raise verdict.refusal(hook.name)
        if not operations:
            return False
        if attempt.deletes:
            text = f'admission webhook "{hook.name}" attempted to modify the object, which is not supported'
            raise statuses.internal(f"{text} for this operation")
        return self._patch(hook, attempt, reviewed["request"]["object"], operations)

    def _patch(self, hook: Hook, attempt: Attempt, reviewed: KubeObject, operations: list[Any]) -> bool:
        try:
            changed = json_patch(reviewed, operations, checks=False)
        except PatchError as problem:
            raise statuses.internal(str(problem)) from problem
        if not isinstance(changed, dict):
            raise statuses.internal(no_object(changed))
        if (changed.get("apiVersion"), changed.get("kind")) != (hook.target.api_version, hook.target.kind):
            told = f"{changed.get('apiVersion', '')}, Kind={changed.get('kind', '')}"
            raise statuses.internal(f"converting ({told}) to ({hook.target.schema.go}): unknown conversion")
        value = self._versions.completed(hook.target, changed)
        if "resourceVersion" not in attempt.value.get("metadata", {}):
            # It was only shown.
            value["metadata"].pop("resourceVersion", None)
        if hook.target is not attempt.resource:
            value = self._versions.shown(value, hook.target, attempt.resource)
        if value == attempt.value:
            return False
        attempt.value.clear()
        attempt.value.update(value)
        return True

    # Judging

    def judge(self, attempt: Attempt) -> None:
        """Refuse what a webhook refuses."""
        if not self._concerns(attempt, VALIDATING):
            return
        hooks = list(self._hooks(VALIDATING, attempt))
        for hook in hooks:
            _check_dry_run(hook, attempt)
        prepared = [self._question(hook, attempt, 0) for hook in hooks]
        place = _place(attempt)
        questions = [
            ((hook.identity, 0, *place), question) for hook, (_, question) in zip(hooks, prepared, strict=True)
        ]
        replies = self._inquiries.replies(questions)
        for hook, (reviewed, _), reply in zip(hooks, prepared, replies, strict=True):
            try:
                verdict = _verdict(reply, reviewed, mutates=False)
            except NotAsked as problem:
                self._not_asked(hook, problem)
                continue
            attempt.warnings += verdict.warnings
            if not verdict.is_allowed:
                raise verdict.refusal(hook.name)

    # Both

    def _concerns(self, attempt: Attempt, storage: str) -> bool:
        """Return whether there is anybody to ask; of webhooks and policies themselves nobody is asked."""
        if attempt.resource.group == _GROUP or attempt.subresource in _NOT_SHOWN:
            return False
        return bool(self._store.entries(storage))

    def _hooks(self, storage: str, attempt: Attempt) -> Iterator[Hook]:
        """Yield the webhooks that are to be asked about an attempt, as it is now."""
        for _, (configuration, _) in sorted(self._store.entries(storage).items()):
            for spec in configuration.get("webhooks") or ():
                if not selectors_match(spec, attempt):
                    continue
                target = target_of(spec, "rules", attempt, self._versions)
                if target is not None and self._conditions_hold(spec, attempt, target):
                    yield Hook((configuration["metadata"]["uid"], spec["name"]), spec, target)

    def _conditions_hold(self, spec: dict[str, Any], attempt: Attempt, target: Resource) -> bool:
        """Return whether all conditions hold; one that cannot be evaluated refuses, unless failures are ignored."""
        if not spec.get("matchConditions"):
            return True
        value, old = shown_objects(attempt, target, self._versions)
        try:
            return conditions_hold(spec, self._expressions, seen_by_expressions(attempt, target, value, old, None))
        except NoValue as problem:
            raise statuses.forbidden(attempt.resource, attempt.name, str(problem)) from problem

    def _question(self, hook: Hook, attempt: Attempt, round_: int) -> tuple[dict[str, Any], Question]:
        """Return the review that a webhook is sent, and the whole question."""
        version = next((each for each in hook.spec["admissionReviewVersions"] if each in REVIEW_VERSIONS), "v1")
        value, old = shown_objects(attempt, hook.target, self._versions)
        identity = (hook.identity, round_, "uid", *_place(attempt))
        uid = self._inquiries.once(identity, self._new_uid)
        review = review_of(version, uid, attempt, hook.target, value, old)
        body = msgspec.json.encode(review)
        return review, self._clients.question(hook.spec["clientConfig"], body, hook.spec.get("timeoutSeconds", 10))

    @staticmethod
    def _not_asked(hook: Hook, problem: NotAsked) -> None:
        if hook.spec.get("failurePolicy") != "Ignore":
            raise statuses.internal(f'failed calling webhook "{hook.name}": {problem}') from problem


def _place(attempt: Attempt) -> tuple[str, str, str, str]:
    """Return what tells attempts of one request apart, and an attempt from the same one after somebody else's write."""
    version = "" if attempt.old is None else str(attempt.store.version_of(attempt.resource.storage, attempt.key) or "")
    return attempt.operation, attempt.namespace, attempt.name, version


def _check_dry_run(hook: Hook, attempt: Attempt) -> None:
    if attempt.dry_run and hook.spec.get("sideEffects") not in _DRY_RUN:
        raise statuses.bad_request(f'admission webhook "{hook.name}" does not support dry run')


def _verdict(reply: Reply, review: dict[str, Any], *, mutates: bool) -> WebhookVerdict:
    try:
        return read_response(answered_review(reply, review), review, mutates=mutates)
    except BadAnswer as problem:
        raise NotAsked(f"failed to call webhook: {problem}") from problem
    except ValueError as problem:
        raise NotAsked(f"received invalid webhook response: {problem}") from problem


def _operations(verdict: WebhookVerdict) -> list[Any]:
    """Return the operations of a JSON patch."""
    if not verdict.patch or not verdict.is_allowed:
        return []
    try:
        operations = unchecked_operations(parse_json(verdict.patch)[0])
    except (ParseError, PatchError) as problem:
        raise NotAsked(f"received undecodable patch in webhook response: {problem}") from problem
    if operations and verdict.patch_type != "JSONPatch":
        raise NotAsked(f'unsupported patch type "{verdict.patch_type}"')
    return operations
