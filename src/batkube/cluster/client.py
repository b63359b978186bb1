"""The client through which all in-process components write: controllers, kubelets, schedulers, the workload's jobs.

There are two implementations. That of the API server (`api.inprocess`) treats requests like kubectl's, so defaults,
admission, quota, generation and finalizers apply to them as on a real cluster. That of runs with policies alone
(`cluster.store_client`) writes to the store, since nothing there could observe the difference. `components.access`
chooses between them. Components read the store directly, and never write to it. Only one of them runs at a time, so no
update can conflict.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from batkube.cluster.decisions import Binding, Decision
from batkube.cluster.store import Key, KubeObject
from batkube.kernel.instants import Instant

_NOT_FOUND = 404


class ApiError(Exception):
    """The API server rejected a request; code, reason and message are those of its Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message


@contextlib.contextmanager
def ignore_not_found() -> Iterator[None]:
    """Ignore NotFound: the object was deleted meanwhile."""
    try:
        yield
    except ApiError as refusal:
        if refusal.code != _NOT_FOUND:
            raise


@contextlib.contextmanager
def prefix_errors(attempt: str) -> Iterator[None]:
    """Prefix the message of an ApiError with `attempt`, as real controllers wrap their errors."""
    try:
        yield
    except ApiError as refusal:
        raise ApiError(refusal.code, refusal.reason, f"{attempt}: {refusal.message}") from None


class Client(Protocol):
    """The API server as one component sees it.

    `storage` is the name of a kind in the store: `pods`, `jobs.batch`. The client does not edit the objects it is
    given; they may share parts with stored objects. It returns the stored objects. Every method may raise `ApiError`.
    """

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Create an object, or post it to a subresource of the object it names (`binding`, `eviction`)."""

    def update(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Replace the stored object by `obj`, whatever its version; `subresource` is `status`, `finalize`, …."""

    def delete(
        self,
        storage: str,
        key: Key,
        now: Instant,
        *,
        propagation: str | None = None,
        grace_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        """Delete the object at `key`; with a `uid`, only if it has that uid."""


class BulkClient(Client, Protocol):
    """A client that writes many objects at little more than the cost of one.

    Its methods keep the order of `keys`, and subscribers of the store get one batch of changes, which carries the
    scheduler's decision, if there is one. If the server rejects a write, those before it have been carried out.
    """

    def create_copies(
        self, storage: str, template: KubeObject, keys: Sequence[Key], uids: Iterable[str], now: Instant
    ) -> None:
        """Create a copy of `template` for each of `keys`, all in one namespace, with these uids."""

    def restore(self, storage: str, objects: Sequence[KubeObject], now: Instant) -> None:
        """Add complete objects that existed before the run began, as they are, like a snapshot of etcd."""

    def bind(self, binding: Binding, now: Instant) -> None:
        """Bind existing pods to nodes."""

    def update_all(self, storage: str, objects: Sequence[KubeObject], now: Instant) -> None:
        """Replace existing objects, all in one namespace; an object whose write is rejected remains as it was."""

    def set_statuses(
        self,
        storage: str,
        keys: Sequence[Key],
        statuses: KubeObject | Sequence[KubeObject],
        now: Instant,
        decision: Decision | None = None,
    ) -> None:
        """Replace the statuses of existing objects: one status for each, or one that all share."""

    def delete_all(
        self, storage: str, keys: Sequence[Key], now: Instant, *, grace_s: int = 0, decision: Decision | None = None
    ) -> None:
        """Delete existing objects: at once, or bound pods within a grace period."""
