"""The behaviour of built-in kinds: combines defaults, admission, strategies and validation."""

from __future__ import annotations

from collections.abc import Callable

from batkube.api.access.certificate_signers import CERTIFICATE_REQUESTS, authorize_certificate_request
from batkube.api.access.escalation import check_escalation
from batkube.api.access.policy_parameter_access import PolicyParameterAuthorizer
from batkube.api.access.rbac_authorizer import RBAC_GROUP as RBAC
from batkube.api.access.rbac_authorizer import Attributes, Authorizer
from batkube.api.admission.chain import AdmissionChain
from batkube.api.admission.request import AdmissionRequest
from batkube.api.custom.definitions import strategy
from batkube.api.decoding.objects import Decoded, decode
from batkube.api.groups.kind_model.context import StrategyContext
from batkube.api.groups.scheme import strategies, validation, warnings
from batkube.api.groups.scheme.catalogue import kind_of
from batkube.api.groups.scheme.conversion import convert_version
from batkube.api.groups.scheme.defaulting import apply_defaults
from batkube.api.requests.options import DeleteOptions
from batkube.api.requests.writes import DeletionContext, Write
from batkube.api.validation.field_errors import FieldError
from batkube.api.validation.problems import Problems
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject, Store


class WriteAdmission:
    """Admission and the additional authorization checks of a write."""

    def __init__(self, store: Store, admission: AdmissionChain, authorizer: Authorizer) -> None:
        self._store = store
        self._admission = admission
        self._authorizer = authorizer

    def admit(self, write: Write, value: KubeObject, old: KubeObject | None) -> None:
        """Run mutating admission, before strategy and validation; may edit or reject the object."""
        self._admission.admit(self._admission_request(write, value, old))
        if write.resource.group == RBAC:
            check_escalation(self._authorizer, write, value, old)

    def validate(self, write: Write, value: KubeObject, old: KubeObject | None) -> Callable[[], None]:
        """Run validating admission; return a function that writes the quota updates."""
        if old is None and write.name_in_path:
            self._authorize_create(write)
        if write.stored.storage == CERTIFICATE_REQUESTS:
            authorize_certificate_request(self._authorizer, write, value, old)
        charges = self._admission.validate(self._admission_request(write, value, old))

        def charge() -> None:
            for key, quota in charges or ():
                self._store.replace("resourcequotas", [key], [quota], write.now)

        return charge

    def _authorize_create(self, write: Write) -> None:
        """Raise a 403 if a PUT or apply, authorized as update or patch, creates an object without permission to create.

        Kubernetes: apiserver/pkg/endpoints/handlers/update.go, withAuthorization.
        """
        resource, name = write.resource, write.name_in_path
        # A namespace object counts as being in itself, as for every other verb.
        namespace = name if resource.storage == "namespaces" else write.namespace
        attributes = Attributes("create", resource.group, resource.version, resource.plural, "", namespace, name)
        self._authorizer.require(write.user, attributes)

    def _admission_request(self, write: Write, value: KubeObject, old: KubeObject | None) -> AdmissionRequest:
        return self._admission.new_request(
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
            options=_write_options_object(write, old) if self._admission.has_webhooks else None,
        )

    def validate_deletion(
        self, resource: Resource, old: KubeObject, options: DeleteOptions, by: DeletionContext
    ) -> None:
        """Run webhooks and policies on the deletion of `old`; raises Failure."""
        if not self._admission.validates_deletions:
            return
        meta = old["metadata"]
        request = self._admission.new_request(
            resource,
            {},
            old,
            by.now,
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            warnings=by.warnings,
            user=by.user,
            dry_run=options.dry_run,
            options=options.as_object(),
            deletes=True,
        )
        self._admission.validate_deletion(request)


def _write_options_object(write: Write, old: KubeObject | None) -> KubeObject:
    """Return the options of a write as an API object, which only webhooks see."""
    return write.options.as_object("CreateOptions" if old is None else "UpdateOptions")


class BuiltInBehaviour:
    """The Behaviour of every built-in kind."""

    def __init__(self, store: Store, admission: WriteAdmission, parameters: PolicyParameterAuthorizer) -> None:
        self._store = store
        self._admission = admission
        self._policy_parameters = parameters

    def decode(self, resource: Resource, value: KubeObject) -> Decoded:
        """Return the object in canonical form, without defaults."""
        return decode(value, resource.schema)

    def default(self, resource: Resource, value: KubeObject) -> None:
        """Set the defaults of unset fields."""
        apply_defaults(resource, value)

    def to_storage_version(self, write: Write, value: KubeObject) -> KubeObject:
        """Convert from the version of the request to the storage version."""
        return value if write.stored is write.resource else convert_version(value, write.resource, write.stored)

    def admit(self, write: Write, value: KubeObject, old: KubeObject | None) -> None:
        """Run mutating admission."""
        self._admission.admit(write, value, old)

    def _context(self, write: Write) -> StrategyContext:
        user = write.user
        return StrategyContext(self._store, write.now, user.name, user.groups, user.uid, write.warnings)

    def prepare_create(self, write: Write, value: KubeObject) -> None:
        """Reset the fields that clients may not set on creation."""
        strategies.prepare_create(write.stored, value, self._context(write))

    def prepare_update(self, write: Write, value: KubeObject, old: KubeObject) -> None:
        """Reset the fields that clients may not change, and update the generation."""
        strategies.prepare_update(write.stored, value, old, self._context(write), write.subresource)

    def _authorize(self, write: Write, value: KubeObject, old: KubeObject | None) -> list[FieldError]:
        problems = Problems()
        authorize = kind_of(write.stored.storage).authorize
        if authorize is not None:
            authorize(value, old, self._context(write), problems)
        return problems

    def validate_create(self, write: Write, value: KubeObject) -> list[FieldError]:
        """Return the problems with a new object; add warnings if it is valid."""
        problems = self._authorize(write, value, None) + validation.validate_create(write.resource, value)
        problems = problems or self._policy_parameters.validate(write, value, None)
        if not problems:
            write.warnings += warnings.warnings_on_create(write.stored, value)
        return problems

    def validate_update(self, write: Write, value: KubeObject, old: KubeObject) -> list[FieldError]:
        """Return the problems with an updated object; add warnings if it is valid."""
        problems = self._authorize(write, value, old)
        problems += validation.validate_update(write.resource, value, old, write.subresource)
        problems = problems or self._policy_parameters.validate(write, value, old)
        if not problems:
            write.warnings += warnings.warnings_on_update(write.stored, value, old, write.subresource)
        return problems


class DefinitionBehaviour(BuiltInBehaviour):
    """The Behaviour of CustomResourceDefinitions."""

    def default(self, resource: Resource, value: KubeObject) -> None:
        """Set the defaults of unset fields."""
        strategy.set_definition_defaults(value)

    def prepare_create(self, write: Write, value: KubeObject) -> None:
        """Reset the fields that clients may not set on creation."""
        strategy.prepare_definition_create(value)

    def prepare_update(self, write: Write, value: KubeObject, old: KubeObject) -> None:
        """Reset the fields that clients may not change, and update the generation."""
        if write.subresource == "status":
            strategy.prepare_definition_status_update(value, old)
        else:
            strategy.prepare_definition_update(value, old)

    def validate_create(self, write: Write, value: KubeObject) -> list[FieldError]:
        """Return the problems with a new definition; add warnings if it is valid."""
        return self._validate(write, value, None)

    def validate_update(self, write: Write, value: KubeObject, old: KubeObject) -> list[FieldError]:
        """Return the problems with an updated definition; add warnings if it is valid, except for its status."""
        if write.subresource == "status":
            return strategy.validate_definition_status_update(value, old)
        return self._validate(write, value, old)

    @staticmethod
    def _validate(write: Write, value: KubeObject, old: KubeObject | None) -> list[FieldError]:
        problems = strategy.validate_definition(value, old)
        if not problems:
            write.warnings += strategy.definition_warnings(value, old)
        return problems
