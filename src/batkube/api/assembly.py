"""Assemble the API server: the only module that imports all of its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from batkube.api.access.authenticator import AUDIENCE, Authenticator
from batkube.api.access.bootstrap_roles import bootstrap_policy
from batkube.api.access.policy_parameter_access import PolicyParameterAuthorizer
from batkube.api.access.rbac_authorizer import Authorizer
from batkube.api.access.reviews import ReviewEvaluator
from batkube.api.access.service_account_tokens import ServiceAccountTokens
from batkube.api.access.token_requests import TokenRequestHandler
from batkube.api.admission.bootstrap_objects import bootstrap_objects
from batkube.api.admission.built_in.resizes import CanResize
from batkube.api.admission.chain import AdmissionChain
from batkube.api.admission.dynamic.expressions import ExpressionCache
from batkube.api.admission.dynamic.mutating_policies import MutatingPolicies
from batkube.api.admission.dynamic.validating_policies import ValidatingPolicies
from batkube.api.admission.dynamic.webhooks import AdmissionWebhooks
from batkube.api.custom.serving.behaviour import CustomBehaviour
from batkube.api.custom.serving.conversion_webhooks import ConversionWebhooks
from batkube.api.custom.serving.custom_kinds import CustomKinds
from batkube.api.custom.serving.lifecycle import DefinitionLifecycle
from batkube.api.discovery.documents import Verbs
from batkube.api.discovery.health import RequestCounters
from batkube.api.discovery.non_resource_paths import Gauges, NonResourcePaths
from batkube.api.inprocess import InProcessClient, WaitingWrites, WritePath
from batkube.api.manifests import ManifestClient
from batkube.api.openapi.documents import Describe, OpenApi
from batkube.api.requests.messages import Request, Response, Stream, Timers
from batkube.api.requests.options import DeleteOptions
from batkube.api.requests.users import User
from batkube.api.requests.webhooks.calls import CallWebhook, WebhookCalls
from batkube.api.requests.webhooks.deferred_writes import DeferredWrites, RunInBackground
from batkube.api.requests.webhooks.interrupted_writes import InterruptedWrites
from batkube.api.requests.webhooks.request_builder import WebhookRequestBuilder
from batkube.api.requests.writes import DeletionContext
from batkube.api.server import ApiServer, OnBug
from batkube.api.verbs.handlers.body_decoder import BodyDecoder
from batkube.api.verbs.handlers.metrics import MetricsApi
from batkube.api.verbs.handlers.object_request import SpecialHandler
from batkube.api.verbs.handlers.objects import ObjectRequestHandler
from batkube.api.verbs.handlers.patching import Patcher
from batkube.api.verbs.handlers.special_resources import SpecialHandlers
from batkube.api.verbs.kinds.behaviours import BuiltInBehaviour, DefinitionBehaviour, WriteAdmission
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.api.verbs.kinds.unmodelled_kinds import note_unmodelled_kinds
from batkube.api.verbs.kinds.version_conversion import ServedVersionConverter
from batkube.api.verbs.storage.deletion import Deleter
from batkube.api.verbs.storage.registry import Registry
from batkube.api.verbs.storage.watches import WatchHub
from batkube.cluster.kinds import DEFAULT_API, KindTable, Resource, ServedApi
from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.store import Key, KubeObject, Store
from batkube.cluster.suspension import SuspensionControl
from batkube.kernel.fidelity import FidelityNotes
from batkube.kernel.instants import Instant
from batkube.kernel.streams import Streams


class DescriptionSources(NamedTuple):
    """Loaders of Kubernetes' documentation texts for types and table columns; called when a text is first needed."""

    types: Describe = lambda _: {}
    columns: Describe = lambda _: {}


_NO_DESCRIPTIONS = DescriptionSources()


class Api:
    """A complete API server over one store, for clients over HTTP (`handle`) and within the process (`client`)."""

    def __init__(
        self,
        store: Store,
        now: Callable[[], Instant],
        timers: Timers,
        streams: Streams,
        users: dict[str, User],
        *,
        bare: bool = False,
        usage: PodUsage | None = None,
        specials: dict[str, SpecialHandler] | None = None,
        notes: FidelityNotes | None = None,
        kinds: ServedApi = DEFAULT_API,
        descriptions: DescriptionSources = _NO_DESCRIPTIONS,
        call_webhook: CallWebhook | None = None,
        interruption: tuple[SuspensionControl, RunInBackground] | None = None,
        on_bug: OnBug | None = None,
        can_resize: CanResize = lambda _: True,
    ) -> None:
        """Build all parts of the server.

        * `bare`: Do without kube-controller-manager: pods get no service account, and roles are not aggregated.
        * `usage`: Reports the resource usage of pods. Without it, metrics.k8s.io is not served.
        * `kinds`: The version of Kubernetes whose kinds are served, and the versions of groups in addition.
        * `descriptions`: Supplies the texts of OpenAPI schemas and table columns.
        * `call_webhook`: Calls a webhook. Without it, webhook configurations are stored but never called.
        * `interruption`: Lets writes of components wait for a webhook without blocking others.
        * `on_bug`: See `ApiServer`. `can_resize`: See `AdmissionChain`.
        """
        self._store = store
        self._kind_table = table = _new_kind_table(kinds, usage is not None)
        authorizer = Authorizer(store, aggregates=not bare)
        notes = FidelityNotes() if notes is None else notes
        policy_parts = store, ExpressionCache(notes), ServedVersionConverter(lambda: self._served_kinds)
        webhook_parts = _webhook_components(*policy_parts, notes, call_webhook)
        self._webhook_calls = webhook_parts.calls
        self._waiting_writes = interruption and _waiting_writes(webhook_parts.calls, *interruption, now)
        policies = ValidatingPolicies(*policy_parts), MutatingPolicies(*policy_parts)
        account_rng = None if bare else streams.named("api service accounts")
        admission = AdmissionChain(store, account_rng, *policies, webhook_parts.webhooks, can_resize)
        admitting = WriteAdmission(store, admission, authorizer)
        note_unmodelled_kinds(store, notes, webhooks=call_webhook is not None)
        custom = CustomKinds(table, store, notes, webhook_parts.conversion_webhooks)
        parts = (store, admitting, PolicyParameterAuthorizer(store, table, authorizer))
        behaviours = BuiltInBehaviour(*parts), DefinitionBehaviour(*parts), CustomBehaviour(custom, admitting.admit)
        self._served_kinds = served = ServedKinds(table, custom, *behaviours, descriptions.columns)
        self._registry = Registry(
            store, served.behaviour, served, admitting.validate, streams.named("api identities"), self._webhook_calls
        )
        lifecycle = DefinitionLifecycle(
            store, _definition_resource(table), self._delete_instances, custom.is_in_built_in_group
        )
        self._deleter = Deleter(store, admitting.validate_deletion, lifecycle.mark_for_deletion)
        self._write_path = WritePath(served, self._registry, self._deleter, admission)
        self._tokens = tokens = ServiceAccountTokens(store, streams.named("api tokens"), now)
        authenticator, bodies = Authenticator(users, tokens), BodyDecoder(served)
        self.watches, counters = WatchHub(store, timers, now), RequestCounters()
        self._non_resource_paths = _non_resource_paths(table, custom, counters, self._gauges, descriptions)
        reviews, token_requests = ReviewEvaluator(authenticator, authorizer), TokenRequestHandler(store, tokens)
        special = SpecialHandlers(served, bodies, reviews, token_requests, self._registry).handlers()
        metrics = {} if usage is None else MetricsApi(store, usage).handlers()
        patcher, subresources = Patcher(served, self._registry, bodies), {**special, **metrics, **(specials or {})}
        objects = ObjectRequestHandler(
            served, self._registry, self._deleter, bodies, patcher, self.watches, subresources
        )
        paths, status = self._non_resource_paths, table.definition_of("meta.k8s.io", "v1", "Status")
        self._server = ApiServer(
            authenticator, authorizer, objects, paths, counters, now, lifecycle.reconcile, status, on_bug
        )

    def handle(self, request: Request) -> Response | Stream:
        """Answer one request.

        Raises PendingWebhookCalls if a webhook has to be called first; then call it and handle the request again.
        """
        if self._webhook_calls is None:
            return self._server.handle(request)
        self._webhook_calls.begin_request(request.webhook_responses)
        try:
            return self._server.handle(request)
        finally:
            self._webhook_calls.end_request()

    def too_large(self) -> Response:
        """Return the answer (413) to a request whose body exceeds the size limit."""
        return self._server.too_large()

    def client(self, component: str) -> InProcessClient:
        """Return an in-process client for a component such as a controller."""
        return InProcessClient(component, self._write_path, self._webhook_calls, self._waiting_writes)

    def manifest_client(self, token: str, manager: str = "kubectl") -> ManifestClient:
        """Return a client that applies manifests with the permissions of `token`."""
        return ManifestClient(self.handle, self._kind_table, token, manager)

    def long_lived_token(self, account: KubeObject, secret: KubeObject, now: Instant) -> str:
        """Return a service account token that is valid as long as its Secret exists."""
        return self._tokens.issue(account, {"secret": secret}, [AUDIENCE], None, now)

    def set_address(self, address: str) -> None:
        """Set the address (`host:port`) that discovery reports to clients."""
        self._non_resource_paths.address = address

    def bootstrap(self, now: Instant, port: int, address: str = "") -> None:
        """Create the objects that every cluster starts with, then compact the store.

        Clients therefore cannot watch from a resourceVersion before the end of the bootstrap. `address` and `port` are
        published as the endpoint of the `kubernetes` service.
        """
        client = self.client("kube-apiserver")
        for value in [*bootstrap_objects(port, address), *bootstrap_policy()]:
            group, _, version = value["apiVersion"].rpartition("/")
            resource = self._kind_table.of_kind(group, version, value["kind"])
            assert resource is not None, value["kind"]
            client.create(resource.storage, value, now)
        self._store.compact()

    def _delete_instances(self, storage: str, now: Instant) -> None:
        resource = self._served_kinds.stored_as(storage)
        if resource is None:
            return
        for key in sorted(self._store.entries(storage)):
            namespace, _, name = Key(key).rpartition("/")
            self._deleter.delete(resource, namespace, name, DeleteOptions(), DeletionContext(now))

    def _gauges(self) -> list[tuple[str, str, float]]:
        return [
            ("batkube_store_version", "The version of the latest change.", self._store.version),
            ("batkube_apiserver_watches", "Watches that are open.", self.watches.count()),
        ]


class _WebhookComponents(NamedTuple):
    """The parts that call webhooks; all are None if the server does not call any."""

    calls: WebhookCalls | None = None
    webhooks: AdmissionWebhooks | None = None
    conversion_webhooks: ConversionWebhooks | None = None


def _new_kind_table(kinds: ServedApi, has_metrics: bool) -> KindTable:
    table = KindTable.builtin(kinds.kubernetes, metrics=has_metrics)
    for group_version in kinds.more_versions:
        table.serve(*group_version.split("/"))
    return table


def _definition_resource(table: KindTable) -> Resource:
    resource = table.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert resource is not None
    return resource


def _webhook_components(
    store: Store,
    expressions: ExpressionCache,
    versions: ServedVersionConverter,
    notes: FidelityNotes,
    call_webhook: CallWebhook | None,
) -> _WebhookComponents:
    if call_webhook is None:
        return _WebhookComponents()
    calls, clients = WebhookCalls(call_webhook, lambda: store.version), WebhookRequestBuilder(store, notes)
    webhooks = AdmissionWebhooks(store, calls, expressions, clients, versions)
    return _WebhookComponents(calls, webhooks, ConversionWebhooks(calls, clients))


def _waiting_writes(
    calls: WebhookCalls | None,
    suspension: SuspensionControl,
    run_in_background: RunInBackground,
    now: Callable[[], Instant],
) -> WaitingWrites | None:
    if calls is None:
        return None
    deferred = DeferredWrites(calls, run_in_background, now)
    return WaitingWrites(suspension, InterruptedWrites(calls, run_in_background, deferred, now), deferred)


def _non_resource_paths(
    table: KindTable, custom: CustomKinds, counters: RequestCounters, gauges: Gauges, descriptions: DescriptionSources
) -> NonResourcePaths:
    """Return the handler of paths that are not about objects."""
    return NonResourcePaths(
        table, OpenApi(table, custom.openapi_schema, descriptions.types), counters, gauges, _discovery_verbs(custom)
    )


def _discovery_verbs(custom: CustomKinds) -> Verbs:
    """Return a function that yields the verbs that discovery lists for a resource."""
    return lambda resource: custom.discovery_verbs(resource) if resource.custom else resource.verbs
