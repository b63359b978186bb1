"""Patches: JSON Patch, merge patch, strategic merge patch and server-side apply, each made into an update.

Follows apiserver/pkg/endpoints/handlers/patch.go, with its answers to patches that cannot be used.
"""

from __future__ import annotations

from typing import Any

from batkube.api.decoding.objects import DecodeError, ParseError, strict_warnings
from batkube.api.groups.validation import validate_scale
from batkube.api.managed_fields.applying import BadConfiguration, Conflicts, applied
from batkube.api.managed_fields.typed_values import Unfit
from batkube.api.patches.documents import patched_document
from batkube.api.patches.restoring import restored
from batkube.api.requests import statuses
from batkube.api.requests.statuses import Failure
from batkube.api.requests.writes import Write
from batkube.api.verbs.bodies import Bodies, media_type, unmarshal_problem, unsupported
from batkube.api.verbs.calls import Call
from batkube.api.verbs.registry import Registry, match_name
from batkube.api.verbs.served import Served
from batkube.api.verbs.yaml_bodies import yaml_of
from batkube.cluster.kinds import Resource
from batkube.cluster.store import KubeObject

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def patch_type(call: Call) -> str:
    """Return the kind of patch by its media type, or refuse (415)."""
    media = media_type(call.request)
    if media in (JSON_PATCH, MERGE_PATCH, APPLY_PATCH) or (media == STRATEGIC_PATCH and not call.resource.custom):
        return media
    if call.resource.custom:
        raise unsupported((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    raise Failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


class Patching:
    """Turns patches into updates."""

    def __init__(self, served: Served, registry: Registry, bodies: Bodies) -> None:
        self._served = served
        self._registry = registry
        self._bodies = bodies

    def patch(self, call: Call, write: Write) -> tuple[KubeObject, bool]:
        """Patch the object of the call; return it with its version, and whether an apply created it."""
        kind = patch_type(call)
        if kind == APPLY_PATCH:
            return self._apply(call, write)

        def produce(live: KubeObject | None) -> KubeObject:
            assert live is not None
            return self._settled(write, live, kind, call.request.body)

        return self._registry.update(write, produce, applied=write.subresource == "scale")

    def _current(self, write: Write, live: KubeObject) -> KubeObject:
        """Return what the client patches: the object in its version, or its Scale."""
        if write.subresource == "scale":
            return self._served.scale(write.resource).read_for_update(live)
        return self._served.in_version(write.resource, live)

    def _schema_resource(self, write: Write) -> Resource:
        return self._served.scale_resource if write.subresource == "scale" else write.resource

    def _settled(self, write: Write, live: KubeObject, kind: str, body: bytes) -> KubeObject:
        """Return what a patch makes of the live object, decoded and checked, with defaults."""
        resource, validation = self._schema_resource(write), write.options.validation
        document = patched_document(kind, self._current(write, live), body, resource, validation != "Ignore")
        value, problems = document.decoded(resource, lambda patched: self._bodies.decoded(resource, patched))
        if validation == "Strict":
            document.refuse_strictly(problems)
        if validation == "Warn":
            write.warnings += problems
        Registry.match_namespace(write, value)
        match_name(value, write.name)
        if write.subresource == "scale":
            return self._scaled(write, live, value)
        self._served.behaviour(write.resource).default(write.resource, value)
        return value

    def _scaled(self, write: Write, live: KubeObject, scale: KubeObject) -> KubeObject:
        """Return the object with a patched Scale."""
        self._check_scale(write, scale)
        handler, owners = self._served.scale(write.resource), self._served.scale_ownership(write.resource, live)
        value = handler.written(live, scale)
        entries = owners.updated(scale, handler.read_for_update(live), manager=write.options.manager, now=write.now)
        value["metadata"]["managedFields"] = entries
        return value

    def _check_scale(self, write: Write, scale: KubeObject) -> None:
        """Refuse a bad Scale of a built-in kind; that of a custom one is judged with its object."""
        problems = () if write.resource.custom else validate_scale(scale)
        if problems:
            raise statuses.invalid(self._served.scale_resource, write.name, problems)

    def _apply(self, call: Call, write: Write) -> tuple[KubeObject, bool]:
        try:
            config, repeated = yaml_of(call.request)
        except ParseError as problem:
            raise statuses.bad_request(f"error decoding YAML: error converting YAML to JSON: {problem}") from problem
        if repeated and write.options.validation == "Strict":
            raise statuses.bad_request(f"error strict decoding YAML: error converting YAML to JSON: {repeated[0]}")
        if write.options.validation == "Warn":
            write.warnings += strict_warnings(repeated)
        config = config if config is not None else {}
        if not isinstance(config, dict):
            into = unmarshal_problem(config, "map[string]interface {}")
            raise statuses.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {into}")

        def produce(live: KubeObject | None) -> KubeObject:
            current = self._current(write, live) if live is not None else None
            result, entries = self._applied(write, config, current, live)
            if write.subresource == "scale":
                assert live is not None
                scale = self._settled_apply(write, result, config)
                self._check_scale(write, scale)
                value = self._served.scale(write.resource).written(live, scale)
            elif current is not None and result is current:
                value = {**current, "metadata": dict(current["metadata"])}
            else:
                value = self._settled_apply(write, result, config)
            if entries:
                value["metadata"]["managedFields"] = entries
            else:
                value["metadata"].pop("managedFields", None)
            return value

        if write.subresource and self._registry.store.entry(write.stored.storage, write.key) is None:
            raise statuses.not_found(write.resource, write.name)
        return self._registry.update(write, produce, upsert=not write.subresource, applied=True)

    def _settled_apply(self, write: Write, result: KubeObject, config: KubeObject) -> KubeObject:
        resource = self._schema_resource(write)
        try:
            if resource.custom:
                value, unknown = self._bodies.decoded(resource, result)
            else:
                value, unknown = restored(result, resource.schema, lambda each: self._bodies.decoded(resource, each))
        except DecodeError as problem:
            kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
            place = f"{(config.get('metadata') or {}).get('namespace', '')}/{write.name}; {kind}"
            words = f"to proper version: unable to convert unstructured object to {kind}: {problem}"
            raise statuses.internal_error(f"failed to convert new object ({place}) {words}") from problem
        if write.options.validation == "Warn":
            write.warnings += unknown
        Registry.match_namespace(write, value)
        match_name(value, write.name)
        self._served.behaviour(resource).default(resource, value)
        return value

    def _applied(
        self, write: Write, config: KubeObject, current: KubeObject | None, live: KubeObject | None
    ) -> tuple[KubeObject, list[dict[str, Any]]]:
        manager, now, force = write.options.manager, write.now, bool(write.options.force)
        try:
            if write.subresource == "scale":
                assert live is not None
                assert current is not None
                owners = self._served.scale_ownership(write.resource, live)
                return owners.applied(config, current, manager=manager, now=now, force=force)
            return applied(
                config,
                current,
                write.resource,
                manager=manager,
                now=now,
                force=force,
                subresource=write.subresource,
                convert=self._served.converter(write.resource),
            )
        except BadConfiguration as problem:
            raise statuses.bad_request(str(problem)) from problem
        except Unfit as problem:
            raise statuses.internal_error(str(problem)) from problem
        except Conflicts as problem:
            raise Failure(409, "Conflict", str(problem), {"causes": problem.causes()}) from problem
