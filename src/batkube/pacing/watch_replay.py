"""Watches of pods as the 2020 prototype had them: each tells again what was told before, and ends.

The prototype did not count versions. Every pod had a number of its own that grew by one when the pod was bound and by
two when it ended, and stayed when its status was patched. A watch from number *n* first set every pod that was behind
to *n*, which is one more event, then told every event since the beginning that had *n* or more, and ended. Its client
went on from the number of the last event. Where that was the patch of a pod that was behind the others, the next watch
told the others' past once more: a pod that is bound was shown as it was before, unbound, and bound again after that.
In between its node looked free, and the scheduler could give it away.

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

REPLAYED = FidelityNote(
    "API", "watches tell the past of pods again, as in 2020: nodes that are taken look free for a moment"
)
#: By how much a pod's number grows at its end.
_END_INCREMENT = 2


class _PodEvent(NamedTuple):
    """An event that is told, again and again; its `version` is the pod's number."""

    change: Change
    #: The event by the form and the type in which it was written.
    texts: dict[tuple[object, str], bytes]


class ReplayingApi:
    """The API server (the Handler of `connections`), but for watches of pods."""

    def __init__(self, api: Handler, store: Store, now: Callable[[], Instant]) -> None:
        self._api = api
        self._now = now
        #: The pods that there are, with their numbers.
        self._pods: dict[Key, Entry] = {}
        self._events: list[_PodEvent] = []
        #: The number that each reader asked from last: a scheduler may have several watches.
        self._versions: dict[tuple[str, ...], int] = {}
        store.subscribe(POD, self._on_pods_changed)

    def handle(self, request: Request) -> Response | Stream:
        """Answer a request."""
        answer = self._api.handle(request)
        if not isinstance(answer, Watch) or answer.storage != POD:
            return answer
        self._versions[request.path, request.query_value("fieldSelector"), request.query_value("labelSelector")] = (
            answer.version
        )
        answer.stop()
        return self._replay(answer)

    def too_large(self) -> Response:
        """Answer a request whose body is larger than is taken."""
        return self._api.too_large()

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        for change in batch.changes():
            held = self._pods.pop(change.key, None)
            if change.type is DELETED or is_finished(change.object):
                if held is not None:
                    pod, number = held
                    self._append_event(Change(number + _END_INCREMENT, DELETED, change.key, pod, pod))
                continue
            number = 1 if held is None else held[1] + (node_of_pod(change.object) != node_of_pod(held[0]))
            self._pods[change.key] = change.object, number
            if held is None or number > held[1] or not node_of_pod(change.object):
                self._append_event(change._replace(version=number))

    def _append_event(self, change: Change) -> None:
        self._events.append(_PodEvent(change, {}))

    def _replay(self, watch: Watch) -> Response:
        number = watch.version
        for key, (pod, held) in self._pods.items():
            if held < number:
                self._pods[key] = pod, number
                self._append_event(Change(number, MODIFIED, key, pod, pod))
        # A reader's numbers never fall, so what is below them all is never told again.
        least = min(self._versions.values())
        self._events = [one for one in self._events if one.change.version >= least]
        again = [one for one in self._events if one.change.version >= number]
        return Response(200, b"".join(self._text(one, watch) for one in again), watch.content_type, watch.headers)

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
