"""The behaviour of built-in kinds: what the packages for defaults, admission, strategies and validation say of them."""

from __future__ import annotations

from collections.abc import Callable

from batkube.api.access.authorization import GROUP as RBAC
from batkube.api.access.authorization import Attributes, Authorizer
from batkube.api.access.escalation import refuse_escalation
from batkube.api.access.policy_parameters import PolicyParameters
from batkube.api.access.signers import REQUESTS, review_request
from batkube.api.admission.attempts import Attempt
from batkube.api.admission.plugins import Admission
from batkube.api.custom import definitions
from batkube.api.decoding.objects import Decoded, decode
from batkube.api.groups import strategies, validation, warnings
from batkube.api.groups.catalogue import kind_of
from batkube.api.groups.context import Context
from batkube.api.groups.conversion import convert
from batkube.api.groups.defaulting import apply_defaults
from batkube.api.requests.options import DeleteOptions
from batkube.api.requests.writes import Deleting, Write
from batkube.api.validation.field_errors import FieldError
from batkube.api.validation.problems import Problems
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject, Store


class Admitting:
    """What a write needs of admission: one function to call."""

    def __init__(self, store: Store, admission: Admission, authorizer: Authorizer) -> None:
        self._store = store
        self._admission = admission
        self._authorizer = authorizer

    def admit(self, write: Write, value: KubeObject, old: KubeObject | None) -> None:
        """Let the plugins change or refuse an object, before strategies and validation."""
        self._admission.admit(self._attempt(write, value, old))
        if write.resource.group == RBAC:
            refuse_escalation(self._authorizer, write, value, old)

    def review(self, write: Write, value: KubeObject, old: KubeObject | None) -> Callable[[], None]:
        """Let the plugins judge the whole object; return what charges it to the quotas."""
        if old is None and write.path_name:
            self._require_create(write)
        if write.stored.storage == REQUESTS:
            review_request(self._authorizer, write, value, old)
        charges = self._admission.review(self._attempt(write, value, old))

        def charge() -> None:
            for key, quota in charges or ():
                self._store.replace("resourcequotas", [key], [quota], write.now)

        return charge

    def _require_create(self, write: Write) -> None:
        """Refuse a PUT or apply that would create, and was let in as an update or patch, to whom may not create.

        Kubernetes: apiserver/pkg/endpoints/handlers/update.go, withAuthorization.
        """
        resource, name = write.resource, write.path_name
        # A namespace is within itself, for this as for every other verb.
        namespace = name if resource.storage == "namespaces" else write.namespace
        wish = Attributes("create", resource.group, resource.version, resource.plural, "", namespace, name)
        self._authorizer.require(write.user, wish)

    def _attempt(self, write: Write, value: KubeObject, old: KubeObject | None) -> Attempt:
        return self._admission.attempt(
            write.resource,
            value,
            old,
            write.now,
            namespace=write.namespace,
            name=write.name,
            subresource=write.subresource,
            warnings=write.warnings,
            user=write.user,
            dry_run=write.options.dry_run,
            options=_options(write, old) if self._admission.asks_webhooks else None,
        )

    def review_deletion(self, resource: Resource, old: KubeObject, options: DeleteOptions, by: Deleting) -> None:
        """Let webhooks and policies refuse to have the object `old` deleted."""
        if not self._admission.judges_deletions:
            return
        meta = old["metadata"]
        attempt = self._admission.attempt(
            resource,
            {},
            old,
            by.now,
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            warnings=by.warnings,
            user=by.user,
            dry_run=options.dry_run,
            options=options.document(),
            deletes=True,
        )
        self._admission.review_deletion(attempt)


def _options(write: Write, old: KubeObject | None) -> KubeObject:
    """Return the options of a write, which only webhooks are told."""
    return write.options.document("CreateOptions" if old is None else "UpdateOptions")


class BuiltIn:
    """The Behaviour of every built-in kind."""

    def __init__(self, store: Store, admission: Admitting, parameters: PolicyParameters) -> None:
        self._store = store
        self._admission = admission
        self._parameters = parameters

    def decode(self, resource: Resource, value: KubeObject) -> Decoded:
        """Return the canonical object, without defaults."""
        return decode(value, resource.schema)

    def default(self, resource: Resource, value: KubeObject) -> None:
        """Fill in what was left out."""
        apply_defaults(resource, value)

    def store_form(self, write: Write, value: KubeObject) -> KubeObject:
        """Convert from the version of the request to the stored one."""
        return value if write.stored is write.resource else convert(value, write.resource, write.stored)

    def admit(self, write: Write, value: KubeObject, old: KubeObject | None) -> None:
        """Let admission change or refuse the object."""
        self._admission.admit(write, value, old)

    def _context(self, write: Write) -> Context:
        user = write.user
        return Context(self._store, write.now, user.name, user.groups, user.uid, write.warnings)

    def prepare_create(self, write: Write, value: KubeObject) -> None:
        """Reset what clients may not set on creation."""
        strategies.prepare_create(write.stored, value, self._context(write))

    def prepare_update(self, write: Write, value: KubeObject, old: KubeObject) -> None:
        """Reset what clients may not change, and count the generation."""
        strategies.prepare_update(write.stored, value, old, self._context(write), write.subresource)

    def _authorize(self, write: Write, value: KubeObject, old: KubeObject | None) -> list[FieldError]:
        problems = Problems()
        authorize = kind_of(write.stored.storage).authorize
        if authorize is not None:
            authorize(value, old, self._context(write), problems)
        return problems

    def validate_create(self, write: Write, value: KubeObject) -> list[FieldError]:
        """Judge a new object, and warn of a good one."""
        problems = self._authorize(write, value, None) + validation.validate_create(write.resource, value)
        problems = problems or self._parameters.judge(write, value, None)
        if not problems:
            write.warnings += warnings.on_create(write.stored, value)
        return problems

    def validate_update(self, write: Write, value: KubeObject, old: KubeObject) -> list[FieldError]:
        """Judge a changed object, and warn of a good one."""
        problems = self._authorize(write, value, old)
        problems += validation.validate_update(write.resource, value, old, write.subresource)
        problems = problems or self._parameters.judge(write, value, old)
        if not problems:
            write.warnings += warnings.on_update(write.stored, value, old, write.subresource)
        return problems


class OfDefinitions(BuiltIn):
    """The Behaviour of CustomResourceDefinitions."""

    def default(self, resource: Resource, value: KubeObject) -> None:
        """Fill in what was left out."""
        definitions.default_definition(value)

    def prepare_create(self, write: Write, value: KubeObject) -> None:
        """Reset what clients may not set on creation."""
        definitions.prepare_definition(value)

    def prepare_update(self, write: Write, value: KubeObject, old: KubeObject) -> None:
        """Reset what clients may not change, and count the generation."""
        if write.subresource == "status":
            definitions.prepare_definition_status(value, old)
        else:
            definitions.prepare_definition_update(value, old)

    def validate_create(self, write: Write, value: KubeObject) -> list[FieldError]:
        """Judge a new definition, and warn of a good one."""
        return self._judge(write, value, None)

    def validate_update(self, write: Write, value: KubeObject, old: KubeObject) -> list[FieldError]:
        """Judge a changed definition, and warn of a good one; of a status there is nothing to warn."""
        if write.subresource == "status":
            return definitions.validate_definition_status(value, old)
        return self._judge(write, value, old)

    @staticmethod
    def _judge(write: Write, value: KubeObject, old: KubeObject | None) -> list[FieldError]:
        problems = definitions.validate_definition(value, old)
        if not problems:
            write.warnings += definitions.definition_warnings(value, old)
        return problems
