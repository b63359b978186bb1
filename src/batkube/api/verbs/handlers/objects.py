"""Handle requests about objects: get, list, watch, create, update, patch, delete and deletecollection."""

from __future__ import annotations

import functools
from collections.abc import Callable

from batkube.api.admission.built_in.namespace_lifecycle import check_deletable
from batkube.api.decoding.nesting import is_nested_deeply
from batkube.api.groups.scheme.validation import validate_scale
from batkube.api.requests import statuses
from batkube.api.requests.field_selectors import NAME
from batkube.api.requests.messages import TEXT, Request, Response, Stream
from batkube.api.requests.methods import (
    check_method,
    check_path_names,
    is_verb_allowed,
    method_not_allowed,
    resource_not_found,
    supports_table,
)
from batkube.api.requests.negotiation import BUILT_IN_MEDIA_TYPES, CUSTOM_MEDIA_TYPES, ResponseForm, negotiate
from batkube.api.requests.options import (
    ListOptions,
    delete_options,
    list_options,
    parse_resource_version,
    validate_timeout,
    write_options,
)
from batkube.api.requests.routing import Route
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User
from batkube.api.requests.writes import DeletionContext, Write, key_of
from batkube.api.verbs.handlers import subresources
from batkube.api.verbs.handlers.body_decoder import BodyDecoder
from batkube.api.verbs.handlers.object_request import ObjectRequest, SpecialHandler
from batkube.api.verbs.handlers.patching import Patcher, patch_type
from batkube.api.verbs.kinds.object_encoding import ObjectEncoder, check_stream_form, encode
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.api.verbs.storage import deletion, listing
from batkube.api.verbs.storage.deletion import Deleter
from batkube.api.verbs.storage.owner_references import drop_duplicate_owners
from batkube.api.verbs.storage.registry import Registry, check_name
from batkube.api.verbs.storage.selection import Selection
from batkube.api.verbs.storage.watches import Watch, WatchHub
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

PATH_NOT_FOUND = Response(404, b"404 page not found\n", TEXT)
_IMMEDIATE_TIMEOUT_S = 0.001
_NO_LIMIT = 2**63 - 1
#: Go: strconv.ParseBool.
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_STREAMABLE = ("list", "watch")
_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


class ObjectRequestHandler:
    """Handles all requests below /api/v1 and /apis/GROUP/VERSION."""

    def __init__(
        self,
        served: ServedKinds,
        registry: Registry,
        deleter: Deleter,
        bodies: BodyDecoder,
        patching: Patcher,
        watches: WatchHub,
        special: dict[str, SpecialHandler],
    ) -> None:
        self._served_kinds = served
        self._registry = registry
        self._deleter = deleter
        self._body_decoder = bodies
        self._patcher = patching
        self._watches = watches
        #: Handlers of resources and subresources (`pods/log`) that are not stored.
        self._special_handlers = special
        self._verbs: dict[str, Callable[[ObjectRequest], Response | Stream]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def serves_group(self, group: str) -> bool:
        """Return whether any resource of the group is served; otherwise its paths do not exist at all."""
        return self._served_kinds.has_group(group)

    def handle(self, request: Request, route: Route, user: User, now: Instant) -> Response | Stream:
        """Handle one request; raises Failure."""
        resource = self._served_kinds.resource(route)
        if resource is None:
            return self._resource_not_found(route)
        if not resource.custom:
            check_method(resource, route, request.method)
        form = negotiate(
            request.headers.get("accept", ""),
            CUSTOM_MEDIA_TYPES if resource.custom else BUILT_IN_MEDIA_TYPES,
            route.verb in _STREAMABLE,
            supports_table(resource, route),
        )
        if request.query_value("pretty") in _TRUE:
            form = ResponseForm(form.media_type, form.transform, form.version, True)
        call = ObjectRequest(request, route, resource, user, now, form)
        try:
            return self._dispatch(call)
        except Failure as failure:
            failure.headers = call.warning_headers()
            raise

    def is_nested_deeply(self, request: Request, route: Route) -> bool:
        """Return whether the body of a request is nested deeply, or the object that it names."""
        storage = "" if (resource := self._served_kinds.resource(route)) is None else resource.storage
        return is_nested_deeply(request.body, self._registry.store.get(storage, key_of(route.namespace, route.name)))

    def _dispatch(self, call: ObjectRequest) -> Response | Stream:
        resource, route = call.resource, call.route
        if route.verb != "watch":
            validate_timeout(call.request)
        check_path_names(route)
        call.warnings += self._served_kinds.warnings(resource, route)
        special = self._special_handlers.get(
            f"{resource.storage}/{route.subresource}" if route.subresource else resource.group_resource
        )
        if special is not None:
            return special(call)
        verb = self._verbs.get(route.verb)
        if verb is None or (resource.custom and not is_verb_allowed(resource, route)):
            raise method_not_allowed()
        return verb(call)

    def _resource_not_found(self, route: Route) -> Response:
        """Return or raise the 404; kube-apiserver answers differently for groups of custom resources."""
        custom = self._served_kinds.custom_group(route)
        if custom is None:
            raise resource_not_found()
        if custom.namespaced == route.namespaced and route.subresource and route.version == custom.version:
            raise statuses.not_found(custom, route.name)
        return PATH_NOT_FOUND

    # Reads

    def _encoder(self, call: ObjectRequest) -> ObjectEncoder:
        return self._served_kinds.encoder(call.resource, call.form, call.request.query_value("includeObject"))

    def _respond(
        self, call: ObjectRequest, status: int, value: KubeObject, encoder: ObjectEncoder | None = None
    ) -> Response:
        body = (encoder or self._encoder(call)).encode_object(value, call.now)
        return Response(status, body, call.form.media_type, call.warning_headers())

    def _respond_plain(self, call: ObjectRequest, status: int, value: KubeObject) -> Response:
        """Return a response with an object of another kind than the resource's, such as a Status."""
        schema = self._served_kinds.schema_of(value)
        return Response(
            status, encode(value, call.form.media_type, schema), call.form.media_type, call.warning_headers()
        )

    def _respond_with_scale(self, call: ObjectRequest, value: KubeObject) -> Response:
        """Return a response with the Scale of an object."""
        encoder = self._served_kinds.scale_encoder(call.resource, call.form, call.request.query_value("includeObject"))
        return self._respond(call, 200, self._served_kinds.scale(call.resource).to_scale(value), encoder)

    def _get(self, call: ObjectRequest) -> Response:
        route = call.route
        version = call.request.query_value("resourceVersion")
        if version:
            try:
                minimum = parse_resource_version(version)
            except ValueError as problem:
                raise statuses.internal_error(str(problem)) from problem
            if minimum > self._registry.store.version:
                raise listing.resource_version_too_large(minimum, self._registry.store.version)
        value = self._registry.get(call.resource, route.namespace, route.name)
        if route.subresource == "scale":
            return self._respond_with_scale(call, value)
        return self._respond(call, 200, value)

    def _list(self, call: ObjectRequest) -> Response:
        options = list_options(call.request, call.resource, watch=False)
        selection = self._selection(call, options)
        page = listing.list_page(self._registry.store, call.resource.storage, call.route.namespace, selection, options)
        self._served_kinds.prepare_conversion(call.resource, [value for value, _ in page.entries])
        body = self._encoder(call).encode_list(page.entries, page.metadata, call.now)
        return Response(200, body, call.form.media_type, call.warning_headers())

    def _selection(self, call: ObjectRequest, options: ListOptions, name: str = "") -> Selection:
        """Return the selection of a request. Fields of custom objects are compared in the requested version."""
        resource = call.resource
        if not resource.custom:
            return Selection(call.route.namespace, name, options)
        if options.fields:
            # Convert all objects in one call, in case a webhook does it.
            self._served_kinds.prepare_conversion(resource, list(self._registry.store.all(resource.storage).values()))
        in_version = functools.partial(self._served_kinds.in_version, resource)
        return Selection(call.route.namespace, name, options, in_version)

    def _watch(self, call: ObjectRequest) -> Stream:
        check_stream_form(call.form, call.request.query_value("includeObject"))
        options = list_options(call.request, call.resource, watch=True)
        if call.route.name and options.fields.exact(NAME) not in (None, call.route.name):
            raise statuses.bad_request("fieldSelector metadata.name doesn't match requested name")
        selection = self._selection(call, options, call.route.name)
        try:
            version = parse_resource_version(options.resource_version)
        except ValueError as problem:
            raise statuses.internal_error(str(problem)) from problem
        store, events = self._registry.store, self._encoder(call).event_encoder(self._watches.now)
        initial, send_initial_events_end, timeout_s = None, False, float(options.timeout_s or 0)
        if options.send_initial_events or (version == 0 and options.send_initial_events is None):
            if version > store.version:
                raise listing.resource_version_too_large(version, store.version)
            initial = [entry for _, entry in selection.select(store.view(call.resource.storage))]
            self._served_kinds.prepare_conversion(call.resource, [value for value, _ in initial])
            send_initial_events_end = options.bookmarks
        if initial is not None or version == 0:
            version = store.version
        if timeout_s < 0:
            # A negative timeout ends the watch at once.
            initial, send_initial_events_end, timeout_s = [], False, _IMMEDIATE_TIMEOUT_S
        watch = Watch(
            self._watches,
            call.resource.storage,
            selection,
            events,
            version,
            initial=initial,
            bookmarks=options.bookmarks,
            send_initial_events_end=send_initial_events_end,
            timeout=timeout_s,
        )
        watch.headers = call.warning_headers()
        return watch

    # Writes

    def _new_write(self, call: ObjectRequest) -> Write:
        route = call.route
        return Write(
            call.resource,
            self._served_kinds.storage_version(call.resource),
            route.namespace,
            route.name,
            route.subresource,
            write_options(call.request, _OPTIONS[route.verb]),
            call.user,
            call.now,
            call.warnings,
            route.name,
        )

    def _create(self, call: ObjectRequest) -> Response:
        write = self._new_write(call)
        if call.route.subresource == "binding" or call.resource.storage == "bindings":
            return self._bind(call, write)
        if call.route.subresource == "eviction":
            eviction = self._body_decoder.decode_kind(call, write, "policy", "v1", "Eviction")
            return self._respond_plain(call, 201, subresources.evict(self._registry, self._deleter, write, eviction))
        value = self._body_decoder.decode_object(call, write)
        return self._respond(call, 201, self._registry.create(write, value))

    def _bind(self, call: ObjectRequest, write: Write) -> Response:
        binding = self._body_decoder.decode_kind(call, write, "", "v1", "Binding")
        Registry.set_or_check_namespace(write, binding)
        name = binding["metadata"].get("name", "")
        if not write.name:
            write.name = name
        elif write.name != name:
            raise statuses.bad_request("name in URL does not match name in Binding object")
        write.resource = write.stored = self._served_kinds.pods
        return self._respond_plain(call, 201, subresources.bind(self._registry, write, binding))

    def _update(self, call: ObjectRequest) -> Response:
        write = self._new_write(call)
        if write.subresource == "scale":
            return self._update_scale(
                call, write, self._body_decoder.decode_kind(call, write, "autoscaling", "v1", "Scale")
            )
        value = self._body_decoder.decode_object(call, write)
        Registry.set_or_check_namespace(write, value)
        check_name(value, write.name)
        drop_duplicate_owners(value, write.warnings)
        uid = value["metadata"].get("uid", "")
        upsert = not write.subresource and self._served_kinds.allows_create_on_update(write.stored)
        result, created = self._registry.update(write, lambda _: value, upsert=upsert, uid=uid)
        return self._respond(call, 201 if created else 200, result)

    def _update_scale(self, call: ObjectRequest, write: Write, scale: KubeObject) -> Response:
        Registry.set_or_check_namespace(write, scale)
        check_name(scale, write.name)
        handler = self._served_kinds.scale(call.resource)
        problems = () if call.resource.custom else validate_scale(scale)
        if problems:
            raise statuses.invalid(self._served_kinds.scale_resource, write.name, problems)
        uid = scale["metadata"].get("uid", "")

        def produce(live: KubeObject | None) -> KubeObject:
            assert live is not None
            value = handler.apply_scale(live, scale)
            owners = self._served_kinds.scale_ownership(call.resource, live)
            entries = owners.update(
                scale, handler.to_scale_for_update(live), manager=write.options.field_manager, now=write.now
            )
            value["metadata"]["managedFields"] = entries
            return value

        result, _ = self._registry.update(write, produce, uid=uid, applied=True)
        return self._respond_with_scale(call, result)

    def _patch(self, call: ObjectRequest) -> Response:
        patch_type(call)
        write = self._new_write(call)
        result, created = self._patcher.patch(call, write)
        if write.subresource == "scale":
            return self._respond_with_scale(call, result)
        return self._respond(call, 201 if created else 200, result)

    # Deletion

    def _delete(self, call: ObjectRequest) -> Response:
        options = delete_options(call.request, self._body_decoder.decode_delete_options(call))
        check_deletable(call.resource, call.route.name)
        call.warnings += self._served_kinds.deletion_warnings(call.resource, options)
        by = DeletionContext(call.now, call.user, call.warnings)
        live = self._registry.store.get(call.resource.storage, key_of(call.route.namespace, call.route.name))
        self._served_kinds.prepare_conversion(call.resource, [] if live is None else [live])
        result = self._deleter.delete(call.resource, call.route.namespace, call.route.name, options, by)
        if result.is_gone and not result.returns_object:
            return self._respond_plain(call, 200, deletion.status_of(call.resource, result))
        # 202 only if the deprecated orphanDependents=false was set and the object still exists.
        # Kubernetes: apiserver/pkg/endpoints/handlers/delete.go, DeleteResource.
        return self._respond(call, 202 if options.orphan is False and not result.is_gone else 200, result.value)

    def _delete_collection(self, call: ObjectRequest) -> Response:
        list_opts: ListOptions = list_options(call.request, call.resource, watch=False)
        options = delete_options(call.request, self._body_decoder.decode_delete_options(call))
        call.warnings += self._served_kinds.deletion_warnings(call.resource, options)
        # kube-apiserver lists page by page, and therefore at exactly the requested version.
        list_opts.limit = list_opts.limit or _NO_LIMIT
        namespace = call.route.namespace
        page = listing.list_page(
            self._registry.store, call.resource.storage, namespace, self._selection(call, list_opts), list_opts
        )
        self._served_kinds.prepare_conversion(call.resource, [value for value, _ in page.entries])
        by = DeletionContext(call.now, call.user, call.warnings)
        # Admission of all objects comes before the first deletion, because a request that needs webhooks is repeated
        # and must not have written anything.
        for step in (self._deleter.validate, self._deleter.delete):
            for value, _ in page.entries:
                meta = value["metadata"]
                step(call.resource, meta.get("namespace", ""), meta["name"], options, by)
        body = self._encoder(call).encode_list(page.entries, page.metadata, call.now)
        return Response(200, body, call.form.media_type, call.warning_headers())
