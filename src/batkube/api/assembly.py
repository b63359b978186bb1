"""The server put together: the only module that knows all its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from batkube.api.access.authentication import AUDIENCE, Authenticator
from batkube.api.access.authorization import Authorizer
from batkube.api.access.bootstrap_roles import bootstrap_policy
from batkube.api.access.policy_parameters import PolicyParameters
from batkube.api.access.reviews import Reviews
from batkube.api.access.token_requests import TokenRequests
from batkube.api.access.tokens import ServiceAccountTokens
from batkube.api.admission.bootstrap import bootstrap_objects
from batkube.api.admission.conditions import Expressions
from batkube.api.admission.mutating_policies import MutatingPolicies
from batkube.api.admission.plugins import Admission
from batkube.api.admission.validating_policies import ValidatingPolicies
from batkube.api.admission.webhooks import Webhooks
from batkube.api.custom.behaviour import CustomBehaviour
from batkube.api.custom.catalogue import CustomKinds
from batkube.api.custom.conversion_webhooks import ConversionWebhooks
from batkube.api.custom.lifecycle import Lifecycle
from batkube.api.discovery.documents import Verbs
from batkube.api.discovery.health import Counters
from batkube.api.discovery.paths import Gauges, Paths
from batkube.api.inprocess import InProcessClient
from batkube.api.manifests import Manifests
from batkube.api.openapi.documents import Describe, OpenApi
from batkube.api.requests.broken_off import Apart, BrokenOff
from batkube.api.requests.messages import Request, Response, Stream, Timers
from batkube.api.requests.options import DeleteOptions
from batkube.api.requests.outside import Ask, Inquiries
from batkube.api.requests.users import User
from batkube.api.requests.webhook_clients import WebhookClients
from batkube.api.requests.writes import Deleting
from batkube.api.server import ApiServer, OnBug
from batkube.api.verbs.behaviours import Admitting, BuiltIn, OfDefinitions
from batkube.api.verbs.bodies import Bodies
from batkube.api.verbs.calls import Special
from batkube.api.verbs.copies import Copies
from batkube.api.verbs.deletion import Deleter
from batkube.api.verbs.metrics import MetricsApi
from batkube.api.verbs.objects import Objects
from batkube.api.verbs.patching import Patching
from batkube.api.verbs.registry import Registry
from batkube.api.verbs.served import Served
from batkube.api.verbs.shown_versions import ShownVersions
from batkube.api.verbs.specials import Specials
from batkube.api.verbs.unmodelled import note_unmodelled
from batkube.api.verbs.watches import Watches
from batkube.cluster.kinds import KindTable
from batkube.cluster.pod_use import PodUse
from batkube.cluster.store import Key, KubeObject, Store
from batkube.cluster.waiting import Breaks
from batkube.kernel.fidelity import FidelityNotes
from batkube.kernel.instants import Instant
from batkube.kernel.streams import Streams


class WordSources(NamedTuple):
    """Where Kubernetes' own words come from, for types and for the columns of tables; asked when first needed."""

    types: Describe = lambda _: {}
    columns: Describe = lambda _: {}


_NO_WORDS = WordSources()


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
        use: PodUse | None = None,
        specials: dict[str, Special] | None = None,
        notes: FidelityNotes | None = None,
        more_versions: Sequence[str] = (),
        words: WordSources = _NO_WORDS,
        ask: Ask | None = None,
        breaking: tuple[Breaks, Apart] | None = None,
        on_bug: OnBug | None = None,
    ) -> None:
        """`bare`: as the real server alone, without service accounts for pods.

        `use` tells what pods use; without it there are no metrics. `more_versions` are served as well: some of the past
        (`policy/v1beta1`), some that are off by default. `words` finds the words that clients may ask for. `ask`
        calls webhooks; without it they are stored only. With `breaking`, components that may be broken off do not hold
        up others meanwhile. For `on_bug` see `ApiServer`.
        """
        self._store = store
        self._table = table = _table(use is not None, more_versions)
        authorizer = Authorizer(store, aggregates=not bare)
        notes = FidelityNotes() if notes is None else notes
        ruling = store, Expressions(notes), ShownVersions(lambda: self._served)
        outside = _outside(*ruling, notes, ask)
        self._inquiries = outside.inquiries
        self._breaking = None if breaking is None else (breaking[0], BrokenOff(breaking[1], now))
        policies = ValidatingPolicies(*ruling), MutatingPolicies(*ruling)
        accounts = None if bare else streams.named("api service accounts")
        admission = Admission(store, accounts, *policies, outside.webhooks)
        admitting = Admitting(store, admission, authorizer)
        note_unmodelled(store, notes, webhooks=ask is not None)
        custom = CustomKinds(table, store, notes, outside.conversions)
        parts = (store, admitting, PolicyParameters(store, table, authorizer))
        behaviours = BuiltIn(*parts), OfDefinitions(*parts), CustomBehaviour(custom, admitting.admit)
        self._served = served = Served(table, custom, *behaviours, words.columns)
        self._registry = Registry(
            store, served.behaviour, served, admitting.review, streams.named("api identities"), self._inquiries
        )
        definitions = table.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert definitions is not None
        lifecycle = Lifecycle(store, definitions, self._delete_instances, custom.is_own)
        self._deleter = Deleter(store, admitting.review_deletion, lifecycle.mark_for_deletion)
        self._copies = Copies(served, self._registry, admission.judges_each)
        self._tokens = tokens = ServiceAccountTokens(store, streams.named("api tokens"), now)
        authenticator, bodies = Authenticator(users, tokens), Bodies(served)
        self.watches, counters = Watches(store, timers, now), Counters()
        self._paths = _paths(table, custom, counters, self._gauges, words)
        special = Specials(
            served, bodies, Reviews(authenticator, authorizer), TokenRequests(store, tokens), self._registry
        )
        objects = Objects(
            served,
            self._registry,
            self._deleter,
            bodies,
            Patching(served, self._registry, bodies),
            self.watches,
            {**special.handlers(), **({} if use is None else MetricsApi(store, use).handlers()), **(specials or {})},
        )
        status = table.definition_of("meta.k8s.io", "v1", "Status")
        self._server = ApiServer(
            authenticator, authorizer, objects, self._paths, counters, now, lifecycle.settle, status, on_bug
        )

    def handle(self, request: Request) -> Response | Stream:
        """Answer one request; one that waits for somebody outside is to be handled again later (`Outside`)."""
        if self._inquiries is None:
            return self._server.handle(request)
        self._inquiries.begin(request.answers)
        try:
            return self._server.handle(request)
        finally:
            self._inquiries.end()

    def too_large(self) -> Response:
        """Answer a request whose body is larger than is taken."""
        return self._server.too_large()

    def client(self, component: str) -> InProcessClient:
        """Return the API for a component within the process."""
        parts = self._served, self._registry, self._deleter, self._copies, self._inquiries, self._breaking
        return InProcessClient(component, *parts)

    def manifests(self, token: str, manager: str = "kubectl") -> Manifests:
        """Return the API for somebody who has manifests to apply, and this token."""
        return Manifests(self.handle, self._table, token, manager)

    def lasting_token(self, account: KubeObject, secret: KubeObject, now: Instant) -> str:
        """Return a token of a service account that holds as long as the Secret that it is for."""
        return self._tokens.issue(account, {"secret": secret}, [AUDIENCE], None, now)

    def listens_on(self, address: str) -> None:
        """Tell where clients reach the server (`host:port`)."""
        self._paths.address = address

    def bootstrap(self, now: Instant, port: int, address: str = "") -> None:
        """Create what every cluster has from the start. Clients cannot know an older version than what follows.

        `address` is where the cluster's pods would find the server.
        """
        client = self.client("kube-apiserver")
        for value in [*bootstrap_objects(port, address), *bootstrap_policy()]:
            group, _, version = value["apiVersion"].rpartition("/")
            resource = self._table.of_kind(group, version, value["kind"])
            assert resource is not None, value["kind"]
            client.create(resource.storage, value, now)
        self._store.compact()

    def _delete_instances(self, storage: str, now: Instant) -> None:
        resource = self._served.stored_as(storage)
        if resource is None:
            return
        for key in sorted(self._store.entries(storage)):
            namespace, _, name = Key(key).rpartition("/")
            self._deleter.delete(resource, namespace, name, DeleteOptions(), Deleting(now))

    def _gauges(self) -> list[tuple[str, str, float]]:
        return [
            ("batkube_store_version", "The version of the latest change.", self._store.version),
            ("batkube_apiserver_watches", "Watches that are open.", self.watches.count()),
        ]


class _Outside(NamedTuple):
    """What asks programs of others: all of it, or nothing."""

    inquiries: Inquiries | None = None
    webhooks: Webhooks | None = None
    conversions: ConversionWebhooks | None = None


def _table(has_metrics: bool, more_versions: Sequence[str]) -> KindTable:
    table = KindTable.builtin(metrics=has_metrics)
    for group_version in more_versions:
        table.serve(*group_version.split("/"))
    return table


def _outside(
    store: Store, expressions: Expressions, versions: ShownVersions, notes: FidelityNotes, ask: Ask | None
) -> _Outside:
    if ask is None:
        return _Outside()
    inquiries, clients = Inquiries(ask, lambda: store.version), WebhookClients(store, notes)
    webhooks = Webhooks(store, inquiries, expressions, clients, versions)
    return _Outside(inquiries, webhooks, ConversionWebhooks(inquiries, clients))


def _paths(table: KindTable, custom: CustomKinds, counters: Counters, gauges: Gauges, words: WordSources) -> Paths:
    """Return what answers requests for other things than objects."""
    return Paths(table, OpenApi(table, custom.openapi_schema, words.types), counters, gauges, _verbs(custom))


def _verbs(custom: CustomKinds) -> Verbs:
    """Return what discovery tells of the verbs of a resource."""
    return lambda resource: custom.discovery_verbs(resource) if resource.custom else resource.verbs
