"""Imitate the pod watches of the 2020 prototype: each one replays old events, and ends.

The prototype had no resource versions. Each pod had its own number, which grew by one when the pod was bound and
by two when it finished; a status patch did not change it. A watch from number *n* first raised every pod with a lower
number to *n*, which is one more event, then sent every event since the beginning with a number of *n* or more, and
ended. The client continued from the number of the last event. If that event patched a pod whose number was lower than
others, the next watch replayed the past of the others: a bound pod was shown as unbound, then as bound again. In
between its node looked free, and the scheduler could bind another pod to it.

Source: oar-team/batkube, restapi/configure_kubernetes.go (listResource), pkg/broker/util.go
(IncrementAllResourceVersionsTo).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from batkube.api.connections.protocol.connection import Handler
from batkube.api.requests.messages import Request, Response, Stream
from batkube.api.verbs.storage.watches import Watch, event_for
from batkube.cluster.mapping import POD
from batkube.cluster.pods.accessors import is_finished, node_of_pod
from batkube.cluster.store import DELETED, MODIFIED, Batch, Change, Entry, Key, Store
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.instants import Instant

REPLAYED = FidelityNote("API", "watches replay old events of pods, as in 2020: nodes in use temporarily appear free")
#: By how much a pod's number grows when the pod finishes.
_END_INCREMENT = 2


class _PodEvent(NamedTuple):
    """An event to replay; `change.version` is the number of the pod."""

    change: Change
    #: The encoded event, by encoding and event type.
    texts: dict[tuple[object, str], bytes]


class ReplayingApi:
    """Wraps the API server (a Handler) and replaces watches of pods."""

    def __init__(self, api: Handler, store: Store, now: Callable[[], Instant]) -> None:
        self._api = api
        self._now = now
        #: The live pods and their numbers.
        self._pods: dict[Key, Entry] = {}
        self._events: list[_PodEvent] = []
        #: The number that each watch last started from; a scheduler may have several watches.
        self._versions: dict[tuple[str, ...], int] = {}
        store.subscribe(POD, self._on_pods_changed)

    def handle(self, request: Request) -> Response | Stream:
        """Handle a request; replace a watch of pods by a replay."""
        response = self._api.handle(request)
        if not isinstance(response, Watch) or response.storage != POD:
            return response
        self._versions[request.path, request.query_value("fieldSelector"), request.query_value("labelSelector")] = (
            response.version
        )
        response.stop()
        return self._replay(response)

    def too_large(self) -> Response:
        """Return the response to a request whose body exceeds the limit."""
        return self._api.too_large()

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            entry = self._pods.pop(change.key, None)
            if change.type is DELETED or is_finished(change.object):
                if entry is not None:
                    pod, number = entry
                    self._append_event(Change(number + _END_INCREMENT, DELETED, change.key, pod, pod))
                continue
            number = 1 if entry is None else entry[1] + (node_of_pod(change.object) != node_of_pod(entry[0]))
            self._pods[change.key] = change.object, number
            if entry is None or number > entry[1] or not node_of_pod(change.object):
                self._append_event(change._replace(version=number))

    def _append_event(self, change: Change) -> None:
        self._events.append(_PodEvent(change, {}))

    def _replay(self, watch: Watch) -> Response:
        number = watch.version
        for key, (pod, pod_number) in self._pods.items():
            if pod_number < number:
                self._pods[key] = pod, number
                self._append_event(Change(number, MODIFIED, key, pod, pod))
        # The numbers of a watch never decrease, so events below all of them are never replayed.
        oldest = min(self._versions.values())
        self._events = [event for event in self._events if event.change.version >= oldest]
        events = [event for event in self._events if event.change.version >= number]
        return Response(200, b"".join(self._text(event, watch) for event in events), watch.content_type, watch.headers)

    def _text(self, pod_event: _PodEvent, watch: Watch) -> bytes:
        event = event_for(pod_event.change, watch.selection)
        if event is None:
            return b""
        kind, pod = event
        key = watch.encoder.identity, kind
        if key not in pod_event.texts:
            body = watch.encoder.encode_body(pod, pod_event.change.version, self._now())
            pod_event.texts[key] = watch.encoder.wrap_event(kind, body)
        return pod_event.texts[key]
