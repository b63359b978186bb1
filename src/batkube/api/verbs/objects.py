"""Requests about objects: from the path and the query to the registry, and back in the form asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable

from batkube.api.admission.namespaces import check_deletion
from batkube.api.groups.validation import validate_scale
from batkube.api.requests import statuses
from batkube.api.requests.field_selectors import NAME
from batkube.api.requests.messages import TEXT, Request, Response, Stream
from batkube.api.requests.methods import (
    check_method,
    check_segments,
    has_table,
    is_allowed,
    no_such_method,
    no_such_resource,
)
from batkube.api.requests.negotiation import BUILT_IN, CUSTOM, Form, negotiate
from batkube.api.requests.options import (
    ListOptions,
    check_timeout,
    delete_options,
    list_options,
    parse_version,
    write_options,
)
from batkube.api.requests.routing import Route
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User
from batkube.api.requests.writes import Deleting, Write, key_of
from batkube.api.verbs import deletion, listing, subresources
from batkube.api.verbs.bodies import Bodies
from batkube.api.verbs.calls import Call, Special
from batkube.api.verbs.deletion import Deleter
from batkube.api.verbs.encoding import ObjectView, check_stream, encode
from batkube.api.verbs.owners import drop_repeated_owners
from batkube.api.verbs.patching import Patching, patch_type
from batkube.api.verbs.registry import Registry, match_name
from batkube.api.verbs.selection import Selection
from batkube.api.verbs.served import Served
from batkube.api.verbs.watches import Watch, Watches
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant

NO_SUCH_PATH = Response(404, b"404 page not found\n", TEXT)
_AT_ONCE_S = 0.001
_EVERYTHING = 2**63 - 1
#: What Go takes for true (strconv.ParseBool).
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_STREAMABLE = ("list", "watch")
_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


class Objects:
    """Answers every request below /api/v1 and /apis/GROUP/VERSION."""

    def __init__(
        self,
        served: Served,
        registry: Registry,
        deleter: Deleter,
        bodies: Bodies,
        patching: Patching,
        watches: Watches,
        special: dict[str, Special],
    ) -> None:
        self._served = served
        self._registry = registry
        self._deleter = deleter
        self._bodies = bodies
        self._patching = patching
        self._watches = watches
        #: Resources and sub-resources (`pods/log`) that are not objects of the store.
        self._special = special
        self._verbs: dict[str, Callable[[Call], Response | Stream]] = {
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
        """Return whether any resource of the group is served; if not, the path is unknown rather than the resource."""
        return self._served.has_group(group)

    def handle(self, request: Request, route: Route, user: User, now: Instant) -> Response | Stream:
        """Answer one request."""
        resource = self._served.resource(route)
        if resource is None:
            return self._missing(route)
        if not resource.custom:
            check_method(resource, route, request.method)
        form = negotiate(
            request.headers.get("accept", ""),
            CUSTOM if resource.custom else BUILT_IN,
            route.verb in _STREAMABLE,
            has_table(resource, route),
        )
        if request.first("pretty") in _TRUE:
            form = Form(form.media_type, form.transform, form.version, True)
        call = Call(request, route, resource, user, now, form)
        try:
            return self._handled(call)
        except Failure as failure:
            failure.headers = call.headers()
            raise

    def _handled(self, call: Call) -> Response | Stream:
        resource, route = call.resource, call.route
        if route.verb != "watch":
            check_timeout(call.request)
        check_segments(route)
        call.warnings += self._served.warnings(resource, route)
        special = self._special.get(
            f"{resource.storage}/{route.subresource}" if route.subresource else resource.group_resource
        )
        if special is not None:
            return special(call)
        verb = self._verbs.get(route.verb)
        if verb is None or (resource.custom and not is_allowed(resource, route)):
            raise no_such_method()
        return verb(call)

    def _missing(self, route: Route) -> Response:
        """Tell that nothing is there; custom resources are served by another handler, which says it its own way."""
        custom = self._served.custom_group(route)
        if custom is None:
            raise no_such_resource()
        if custom.namespaced == route.namespaced and route.subresource and route.version == custom.version:
            raise statuses.not_found(custom, route.name)
        return NO_SUCH_PATH

    # Reading

    def _view(self, call: Call) -> ObjectView:
        return self._served.view(call.resource, call.form, call.request.first("includeObject"))

    def _answer(self, call: Call, status: int, value: KubeObject, view: ObjectView | None = None) -> Response:
        body = (view or self._view(call)).object(value, call.now)
        return Response(status, body, call.form.media_type, call.headers())

    def _plain(self, call: Call, status: int, value: KubeObject) -> Response:
        """Answer with an object that is not of the resource itself, such as a Status or a Scale."""
        schema = self._served.schema_of(value)
        return Response(status, encode(value, call.form.media_type, schema), call.form.media_type, call.headers())

    def _scale_answer(self, call: Call, value: KubeObject) -> Response:
        """Answer with the Scale of an object."""
        view = self._served.scale_view(call.resource, call.form, call.request.first("includeObject"))
        return self._answer(call, 200, self._served.scale(call.resource).read(value), view)

    def _get(self, call: Call) -> Response:
        route = call.route
        version = call.request.first("resourceVersion")
        if version:
            try:
                known = parse_version(version)
            except ValueError as problem:
                raise statuses.internal_error(str(problem)) from problem
            if known > self._registry.store.version:
                raise listing.too_large(known, self._registry.store.version)
        value = self._registry.get(call.resource, route.namespace, route.name)
        if route.subresource == "scale":
            return self._scale_answer(call, value)
        return self._answer(call, 200, value)

    def _list(self, call: Call) -> Response:
        options = list_options(call.request, call.resource, watch=False)
        selection = self._selection(call, options)
        page = listing.list_page(self._registry.store, call.resource.storage, call.route.namespace, selection, options)
        self._served.prepare(call.resource, [value for value, _ in page.entries])
        body = self._view(call).list(page.entries, page.metadata, call.now)
        return Response(200, body, call.form.media_type, call.headers())

    def _selection(self, call: Call, options: ListOptions, name: str = "") -> Selection:
        """Return what a request chooses; by the fields of custom objects as they are in the version asked for."""
        resource = call.resource
        if not resource.custom:
            return Selection(call.route.namespace, name, options)
        if options.fields:
            # One question for all, where a webhook converts them.
            self._served.prepare(resource, list(self._registry.store.all(resource.storage).values()))
        in_version = functools.partial(self._served.in_version, resource)
        return Selection(call.route.namespace, name, options, in_version)

    def _watch(self, call: Call) -> Stream:
        check_stream(call.form, call.request.first("includeObject"))
        options = list_options(call.request, call.resource, watch=True)
        if call.route.name and options.fields.exact(NAME) not in (None, call.route.name):
            raise statuses.bad_request("fieldSelector metadata.name doesn't match requested name")
        selection = self._selection(call, options, call.route.name)
        try:
            version = parse_version(options.version)
        except ValueError as problem:
            raise statuses.internal_error(str(problem)) from problem
        store, events = self._registry.store, self._view(call).events(self._watches.now)
        initial, ends, timeout_s = None, False, float(options.timeout or 0)
        if options.initial_events or (version == 0 and options.initial_events is None):
            if version > store.version:
                raise listing.too_large(version, store.version)
            initial = [entry for _, entry in selection.of(store.entries(call.resource.storage))]
            self._served.prepare(call.resource, [value for value, _ in initial])
            ends = options.bookmarks
        if initial is not None or version == 0:
            version = store.version
        if timeout_s < 0:
            # It is over before it begins.
            initial, ends, timeout_s = [], False, _AT_ONCE_S
        watch = Watch(
            self._watches,
            call.resource.storage,
            selection,
            events,
            version,
            initial=initial,
            bookmarks=options.bookmarks,
            marks_end=ends,
            timeout=timeout_s,
        )
        watch.headers = call.headers()
        return watch

    # Writing

    def _write(self, call: Call) -> Write:
        route = call.route
        return Write(
            call.resource,
            self._served.stored(call.resource),
            route.namespace,
            route.name,
            route.subresource,
            write_options(call.request, _OPTIONS[route.verb]),
            call.user,
            call.now,
            call.warnings,
            route.name,
        )

    def _create(self, call: Call) -> Response:
        write = self._write(call)
        if call.route.subresource == "binding" or call.resource.storage == "bindings":
            return self._bind(call, write)
        if call.route.subresource == "eviction":
            eviction = self._bodies.other(call, write, "policy", "v1", "Eviction")
            return self._plain(call, 201, subresources.evict(self._registry, self._deleter, write, eviction))
        value = self._bodies.object(call, write)
        return self._answer(call, 201, self._registry.create(write, value))

    def _bind(self, call: Call, write: Write) -> Response:
        binding = self._bodies.other(call, write, "", "v1", "Binding")
        Registry.match_namespace(write, binding)
        name = binding["metadata"].get("name", "")
        if not write.name:
            write.name = name
        elif write.name != name:
            raise statuses.bad_request("name in URL does not match name in Binding object")
        write.resource = write.stored = self._served.pods
        return self._plain(call, 201, subresources.bind(self._registry, write, binding))

    def _update(self, call: Call) -> Response:
        write = self._write(call)
        if write.subresource == "scale":
            return self._update_scale(call, write, self._bodies.other(call, write, "autoscaling", "v1", "Scale"))
        value = self._bodies.object(call, write)
        Registry.match_namespace(write, value)
        match_name(value, write.name)
        drop_repeated_owners(value, write.warnings)
        uid = value["metadata"].get("uid", "")
        upsert = not write.subresource and self._served.allows_create_on_update(write.stored)
        result, created = self._registry.update(write, lambda _: value, upsert=upsert, uid=uid)
        return self._answer(call, 201 if created else 200, result)

    def _update_scale(self, call: Call, write: Write, scale: KubeObject) -> Response:
        Registry.match_namespace(write, scale)
        match_name(scale, write.name)
        handler = self._served.scale(call.resource)
        problems = () if call.resource.custom else validate_scale(scale)
        if problems:
            raise statuses.invalid(self._served.scale_resource, write.name, problems)
        uid = scale["metadata"].get("uid", "")

        def produce(live: KubeObject | None) -> KubeObject:
            assert live is not None
            value = handler.written(live, scale)
            owners = self._served.scale_ownership(call.resource, live)
            entries = owners.updated(scale, handler.read_for_update(live), manager=write.options.manager, now=write.now)
            value["metadata"]["managedFields"] = entries
            return value

        result, _ = self._registry.update(write, produce, uid=uid, applied=True)
        return self._scale_answer(call, result)

    def _patch(self, call: Call) -> Response:
        patch_type(call)
        write = self._write(call)
        result, created = self._patching.patch(call, write)
        if write.subresource == "scale":
            return self._scale_answer(call, result)
        return self._answer(call, 201 if created else 200, result)

    # Deleting

    def _delete(self, call: Call) -> Response:
        options = delete_options(call.request, self._bodies.delete_options(call))
        check_deletion(call.resource, call.route.name)
        call.warnings += self._served.deletion_warnings(call.resource, options)
        by = Deleting(call.now, call.user, call.warnings)
        live = self._registry.store.get(call.resource.storage, key_of(call.route.namespace, call.route.name))
        self._served.prepare(call.resource, [] if live is None else [live])
        done = self._deleter.delete(call.resource, call.route.namespace, call.route.name, options, by)
        if done.gone and not done.whole:
            return self._plain(call, 200, deletion.status_of(call.resource, done))
        # Only whoever asks for dependents to go as well, in the older way, is told that it has merely begun.
        return self._answer(call, 202 if options.orphan is False and not done.gone else 200, done.value)

    def _delete_collection(self, call: Call) -> Response:
        chosen: ListOptions = list_options(call.request, call.resource, watch=False)
        options = delete_options(call.request, self._bodies.delete_options(call))
        call.warnings += self._served.deletion_warnings(call.resource, options)
        # It is listed page by page, and so at exactly the version asked for.
        chosen.limit = chosen.limit or _EVERYTHING
        namespace = call.route.namespace
        page = listing.list_page(
            self._registry.store, call.resource.storage, namespace, self._selection(call, chosen), chosen
        )
        self._served.prepare(call.resource, [value for value, _ in page.entries])
        by = Deleting(call.now, call.user, call.warnings)
        # All are judged before any is deleted: a request that waits for a webhook must not have written anything.
        for act in (self._deleter.judge, self._deleter.delete):
            for value, _ in page.entries:
                meta = value["metadata"]
                act(call.resource, meta.get("namespace", ""), meta["name"], options, by)
        body = self._view(call).list(page.entries, page.metadata, call.now)
        return Response(200, body, call.form.media_type, call.headers())
