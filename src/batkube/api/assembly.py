"""The server put together: the only module that knows all its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from batkube.api.access.authenticator import AUDIENCE, Authenticator
from batkube.api.access.bootstrap_roles import bootstrap_policy
from batkube.api.access.policy_parameter_access import PolicyParameterAuthorizer
from batkube.api.access.rbac_authorizer import Authorizer
from batkube.api.access.reviews import ReviewEvaluator
from batkube.api.access.service_account_tokens import ServiceAccountTokens
from batkube.api.access.token_requests import TokenRequestHandler
from batkube.api.admission.bootstrap_objects import bootstrap_objects
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
from batkube.api.inprocess import InProcessClient
from batkube.api.manifests import ManifestClient
from batkube.api.openapi.documents import Describe, OpenApi
from batkube.api.requests.messages import Request, Response, Stream, Timers
from batkube.api.requests.options import DeleteOptions
from batkube.api.requests.users import User
from batkube.api.requests.webhooks.calls import CallWebhook, WebhookCalls
from batkube.api.requests.webhooks.interrupted_writes import InterruptedWrites, RunInBackground
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
from batkube.api.verbs.kinds.bulk_creation import BulkCreator
from batkube.api.verbs.kinds.served_kinds import ServedKinds
from batkube.api.verbs.kinds.unmodelled_kinds import note_unmodelled_kinds
from batkube.api.verbs.kinds.version_conversion import ServedVersionConverter
from batkube.api.verbs.storage.deletion import Deleter
from batkube.api.verbs.storage.registry import Registry
from batkube.api.verbs.storage.watches import WatchHub
from batkube.cluster.kinds import KindTable
from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.store import Key, KubeObject, Store
from batkube.cluster.suspension import SuspensionControl
from batkube.kernel.fidelity import FidelityNotes
from batkube.kernel.instants import Instant
from batkube.kernel.streams import Streams


class DescriptionSources(NamedTuple):
    """Where Kubernetes' own words come from, for types and for the columns of tables; asked when first needed."""

    types: Describe = lambda _: {}
    columns: Describe = lambda _: {}


_NO_DESCRIPTIONS = DescriptionSources()


class Api:
    """A whole API server over one store: for clients outside (`handle`) and inside the process (`client`)."""

    def __init__(
        self,
        store: Store,
        now: Callable[[], Instant],
        timers: Timers,
        streams: Streams,
        users: dict[str, User],
        *,
        bare: bool = False,
        use: PodUsage | None = None,
        specials: dict[str, SpecialHandler] | None = None,
        notes: FidelityNotes | None = None,
        more_versions: Sequence[str] = (),
        words: DescriptionSources = _NO_DESCRIPTIONS,
        ask: CallWebhook | None = None,
        breaking: tuple[SuspensionControl, RunInBackground] | None = None,
        on_bug: OnBug | None = None,
    ) -> None:
        """`bare`: as the real server alone, without service accounts for pods.

        `use` tells what pods use; without it there are no metrics. `more_versions` are served as well: some of the past
        (`policy/v1beta1`), some that are off by default. `words` finds the words that clients may ask for. `ask`
        calls webhooks; without it they are stored only. With `breaking`, components that may be broken off do not hold
        up others meanwhile. For `on_bug` see `ApiServer`.
        """
        self._store = store
        self._kind_table = table = _new_kind_table(use is not None, more_versions)
        authorizer = Authorizer(store, aggregates=not bare)
        notes = FidelityNotes() if notes is None else notes
        ruling = store, ExpressionCache(notes), ServedVersionConverter(lambda: self._served_kinds)
        outside = _webhook_components(*ruling, notes, ask)
        self._webhook_calls = outside.calls
        self._interruption = None if breaking is None else (breaking[0], InterruptedWrites(breaking[1], now))
        policies = ValidatingPolicies(*ruling), MutatingPolicies(*ruling)
        accounts = None if bare else streams.named("api service accounts")
        admission = AdmissionChain(store, accounts, *policies, outside.webhooks)
        admitting = WriteAdmission(store, admission, authorizer)
        note_unmodelled_kinds(store, notes, webhooks=ask is not None)
        custom = CustomKinds(table, store, notes, outside.conversion_webhooks)
        parts = (store, admitting, PolicyParameterAuthorizer(store, table, authorizer))
        behaviours = BuiltInBehaviour(*parts), DefinitionBehaviour(*parts), CustomBehaviour(custom, admitting.admit)
        self._served_kinds = served = ServedKinds(table, custom, *behaviours, words.columns)
        self._registry = Registry(
            store, served.behaviour, served, admitting.validate, streams.named("api identities"), self._webhook_calls
        )
        definitions = table.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert definitions is not None
        lifecycle = DefinitionLifecycle(store, definitions, self._delete_instances, custom.is_in_built_in_group)
        self._deleter = Deleter(store, admitting.validate_deletion, lifecycle.mark_for_deletion)
        self._bulk_creator = BulkCreator(served, self._registry, admission.is_name_dependent)
        self._tokens = tokens = ServiceAccountTokens(store, streams.named("api tokens"), now)
        authenticator, bodies = Authenticator(users, tokens), BodyDecoder(served)
        self.watches, counters = WatchHub(store, timers, now), RequestCounters()
        self._non_resource_paths = _non_resource_paths(table, custom, counters, self._gauges, words)
        reviews, token_requests = ReviewEvaluator(authenticator, authorizer), TokenRequestHandler(store, tokens)
        special = SpecialHandlers(served, bodies, reviews, token_requests, self._registry).handlers()
        metrics = {} if use is None else MetricsApi(store, use).handlers()
        patcher, subresources = Patcher(served, self._registry, bodies), {**special, **metrics, **(specials or {})}
        objects = ObjectRequestHandler(
            served, self._registry, self._deleter, bodies, patcher, self.watches, subresources
        )
        status = table.definition_of("meta.k8s.io", "v1", "Status")
        paths, reconcile = self._non_resource_paths, lifecycle.reconcile
        self._server = ApiServer(authenticator, authorizer, objects, paths, counters, now, reconcile, status, on_bug)

    def handle(self, request: Request) -> Response | Stream:
        """Answer one request; one that waits for somebody outside is to be handled again later (`PendingWebhookCalls`)."""
        if self._webhook_calls is None:
            return self._server.handle(request)
        self._webhook_calls.begin_request(request.webhook_responses)
        try:
            return self._server.handle(request)
        finally:
            self._webhook_calls.end_request()

    def too_large(self) -> Response:
        """Answer a request whose body is larger than is taken."""
        return self._server.too_large()

    def client(self, component: str) -> InProcessClient:
        """Return the API for a component within the process."""
        parts = (
            self._served_kinds,
            self._registry,
            self._deleter,
            self._bulk_creator,
            self._webhook_calls,
            self._interruption,
        )
        return InProcessClient(component, *parts)

    def manifest_client(self, token: str, manager: str = "kubectl") -> ManifestClient:
        """Return the API for somebody who has manifests to apply, and this token."""
        return ManifestClient(self.handle, self._kind_table, token, manager)

    def long_lived_token(self, account: KubeObject, secret: KubeObject, now: Instant) -> str:
        """Return a token of a service account that holds as long as the Secret that it is for."""
        return self._tokens.issue(account, {"secret": secret}, [AUDIENCE], None, now)

    def set_address(self, address: str) -> None:
        """Tell where clients reach the server (`host:port`)."""
        self._non_resource_paths.address = address

    def bootstrap(self, now: Instant, port: int, address: str = "") -> None:
        """Create what every cluster has from the start. Clients cannot know an older version than what follows.

        `address` is where the cluster's pods would find the server.
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
    """What asks programs of others: all of it, or nothing."""

    calls: WebhookCalls | None = None
    webhooks: AdmissionWebhooks | None = None
    conversion_webhooks: ConversionWebhooks | None = None


def _new_kind_table(has_metrics: bool, more_versions: Sequence[str]) -> KindTable:
    table = KindTable.builtin(metrics=has_metrics)
    for group_version in more_versions:
        table.serve(*group_version.split("/"))
    return table


def _webhook_components(
    store: Store,
    expressions: ExpressionCache,
    versions: ServedVersionConverter,
    notes: FidelityNotes,
    ask: CallWebhook | None,
) -> _WebhookComponents:
    if ask is None:
        return _WebhookComponents()
    inquiries, clients = WebhookCalls(ask, lambda: store.version), WebhookRequestBuilder(store, notes)
    webhooks = AdmissionWebhooks(store, inquiries, expressions, clients, versions)
    return _WebhookComponents(inquiries, webhooks, ConversionWebhooks(inquiries, clients))


def _non_resource_paths(
    table: KindTable, custom: CustomKinds, counters: RequestCounters, gauges: Gauges, words: DescriptionSources
) -> NonResourcePaths:
    """Return what answers requests for other things than objects."""
    return NonResourcePaths(
        table, OpenApi(table, custom.openapi_schema, words.types), counters, gauges, _discovery_verbs(custom)
    )


def _discovery_verbs(custom: CustomKinds) -> Verbs:
    """Return what discovery tells of the verbs of a resource."""
    return lambda resource: custom.discovery_verbs(resource) if resource.custom else resource.verbs
