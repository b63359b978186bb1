"""Handle patches: JSON patch, merge patch, strategic merge patch and server-side apply.

Follows apiserver/pkg/endpoints/handlers/patch.go, including its errors.
"""

from __future__ import annotations

from typing import Any

from batkube.api.decoding.objects import DecodeError, ParseError, strict_warnings
from batkube.api.groups.scheme.validation import validate_scale
from batkube.api.managed_fields.server_side_apply import BadApplyConfiguration, Conflicts, apply_configuration
from batkube.api.managed_fields.typed_values import SchemaMismatch
from batkube.api.patches.patched_documents import apply_patch
from batkube.api.patches.unstructured_conversion import from_unstructured
from batkube.api.requests import statuses
from batkube.api.requests.statuses import Failure
from batkube.api.requests.writes import Write
from batkube.api.verbs.handlers.body_decoder import BodyDecoder, media_type, unmarshal_error, unsupported_media_type
from batkube.api.verbs.handlers.object_request import ObjectRequest
from batkube.api.verbs.handlers.yaml_body import parse_yaml_body
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.api.verbs.storage.registry import Registry, check_name
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def patch_type(call: ObjectRequest) -> str:
    """Return the media type of the patch; raises a 415 if it is not supported."""
    media = media_type(call.request)
    if media in (JSON_PATCH, MERGE_PATCH, APPLY_PATCH) or (media == STRATEGIC_PATCH and not call.resource.custom):
        return media
    if call.resource.custom:
        raise unsupported_media_type((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    raise Failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


class Patcher:
    """Applies patches as updates."""

    def __init__(self, served: ServedKinds, registry: Registry, bodies: BodyDecoder) -> None:
        self._served_kinds = served
        self._registry = registry
        self._body_decoder = bodies

    def patch(self, call: ObjectRequest, write: Write) -> tuple[KubeObject, bool]:
        """Patch the object of the request; return it with its resourceVersion, and whether an apply created it."""
        kind = patch_type(call)
        if kind == APPLY_PATCH:
            return self._apply(call, write)

        def produce(live: KubeObject | None) -> KubeObject:
            assert live is not None
            return self._apply_document(write, live, kind, call.request.body)

        return self._registry.update(write, produce, applied=write.subresource == "scale")

    def _patch_target(self, write: Write, live: KubeObject) -> KubeObject:
        """Return the document that is patched: the object in the request's version, or its Scale."""
        if write.subresource == "scale":
            return self._served_kinds.scale(write.resource).to_scale_for_update(live)
        return self._served_kinds.in_version(write.resource, live)

    def _schema_resource(self, write: Write) -> Resource:
        return self._served_kinds.scale_resource if write.subresource == "scale" else write.resource

    def _apply_document(self, write: Write, live: KubeObject, kind: str, body: bytes) -> KubeObject:
        """Return the patched live object, decoded, checked and defaulted."""
        resource, validation = self._schema_resource(write), write.options.field_validation
        document = apply_patch(kind, self._patch_target(write, live), body, resource, validation != "Ignore")
        value, problems = document.decode(resource, lambda patched: self._body_decoder.decode_value(resource, patched))
        if validation == "Strict":
            document.reject_strict_problems(problems)
        if validation == "Warn":
            write.warnings += problems
        Registry.set_or_check_namespace(write, value)
        check_name(value, write.name)
        if write.subresource == "scale":
            return self._with_scale(write, live, value)
        self._served_kinds.behaviour(write.resource).default(write.resource, value)
        return value

    def _with_scale(self, write: Write, live: KubeObject, scale: KubeObject) -> KubeObject:
        """Return the object updated from a patched Scale."""
        self._check_scale(write, scale)
        handler, owners = (
            self._served_kinds.scale(write.resource),
            self._served_kinds.scale_ownership(write.resource, live),
        )
        value = handler.apply_scale(live, scale)
        entries = owners.update(
            scale, handler.to_scale_for_update(live), manager=write.options.field_manager, now=write.now
        )
        value["metadata"]["managedFields"] = entries
        return value

    def _check_scale(self, write: Write, scale: KubeObject) -> None:
        """Raise a 422 for an invalid Scale of a built-in kind. That of a custom kind is validated with its object."""
        problems = () if write.resource.custom else validate_scale(scale)
        if problems:
            raise statuses.invalid(self._served_kinds.scale_resource, write.name, problems)

    def _apply(self, call: ObjectRequest, write: Write) -> tuple[KubeObject, bool]:
        try:
            config, duplicates = parse_yaml_body(call.request)
        except ParseError as problem:
            raise statuses.bad_request(f"error decoding YAML: error converting YAML to JSON: {problem}") from problem
        if duplicates and write.options.field_validation == "Strict":
            raise statuses.bad_request(f"error strict decoding YAML: error converting YAML to JSON: {duplicates[0]}")
        if write.options.field_validation == "Warn":
            write.warnings += strict_warnings(duplicates)
        config = config if config is not None else {}
        if not isinstance(config, dict):
            into = unmarshal_error(config, "map[string]interface {}")
            raise statuses.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {into}")

        def produce(live: KubeObject | None) -> KubeObject:
            current = self._patch_target(write, live) if live is not None else None
            result, entries = self._merge_applied(write, config, current, live)
            if write.subresource == "scale":
                assert live is not None
                scale = self._decode_applied(write, result, config)
                self._check_scale(write, scale)
                value = self._served_kinds.scale(write.resource).apply_scale(live, scale)
            elif current is not None and result is current:
                value = {**current, "metadata": dict(current["metadata"])}
            else:
                value = self._decode_applied(write, result, config)
            if entries:
                value["metadata"]["managedFields"] = entries
            else:
                value["metadata"].pop("managedFields", None)
            return value

        if write.subresource and self._registry.store.entry(write.stored.storage, write.key) is None:
            raise statuses.not_found(write.resource, write.name)
        return self._registry.update(write, produce, upsert=not write.subresource, applied=True)

    def _decode_applied(self, write: Write, result: KubeObject, config: KubeObject) -> KubeObject:
        resource = self._schema_resource(write)
        try:
            if resource.custom:
                value, unknown = self._body_decoder.decode_value(resource, result)
            else:
                value, unknown = from_unstructured(
                    result, resource.schema, lambda each: self._body_decoder.decode_value(resource, each)
                )
        except DecodeError as problem:
            kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
            subject = f"{(config.get('metadata') or {}).get('namespace', '')}/{write.name}; {kind}"
            reason = f"to proper version: unable to convert unstructured object to {kind}: {problem}"
            raise statuses.internal_error(f"failed to convert new object ({subject}) {reason}") from problem
        if write.options.field_validation == "Warn":
            write.warnings += unknown
        Registry.set_or_check_namespace(write, value)
        check_name(value, write.name)
        self._served_kinds.behaviour(resource).default(resource, value)
        return value

    def _merge_applied(
        self, write: Write, config: KubeObject, current: KubeObject | None, live: KubeObject | None
    ) -> tuple[KubeObject, list[dict[str, Any]]]:
        manager, now, force = write.options.field_manager, write.now, bool(write.options.force)
        try:
            if write.subresource == "scale":
                assert live is not None
                assert current is not None
                owners = self._served_kinds.scale_ownership(write.resource, live)
                return owners.apply(config, current, manager=manager, now=now, force=force)
            return apply_configuration(
                config,
                current,
                write.resource,
                manager=manager,
                now=now,
                force=force,
                subresource=write.subresource,
                convert=self._served_kinds.converter(write.resource),
            )
        except BadApplyConfiguration as problem:
            raise statuses.bad_request(str(problem)) from problem
        except SchemaMismatch as problem:
            raise statuses.internal_error(str(problem)) from problem
        except Conflicts as problem:
            raise Failure(409, "Conflict", str(problem), {"causes": problem.causes()}) from problem
