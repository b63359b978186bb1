"""How the parts of a cluster write: the API as controllers, kubelets and schedulers inside the process see it.

What they make goes the same way as what kubectl makes, so that defaults, admission, quota, generation and finalizers
apply to it as on a real cluster. They read from the store itself and are the only ones running while they act, so
there are no conflicts to retry.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from batkube.cluster.store import Key, KubeObject
from batkube.kernel.instants import Instant

_NOT_FOUND = 404


class ApiError(Exception):
    """The server did not do what was asked, for the reason and with the code that its Status gives."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message


@contextlib.contextmanager
def ignore_not_found() -> Iterator[None]:
    """Pass over that what is written to, or deleted, is not there any more."""
    try:
        yield
    except ApiError as refusal:
        if refusal.code != _NOT_FOUND:
            raise


@contextlib.contextmanager
def prefix_errors(attempt: str) -> Iterator[None]:
    """Let a refusal begin with what was attempted, as the errors of real controllers do."""
    try:
        yield
    except ApiError as refusal:
        raise ApiError(refusal.code, refusal.reason, f"{attempt}: {refusal.message}") from None


class Client(Protocol):
    """The API server, for one component.

    `storage` is the name of a kind in the store: `pods`, `jobs.batch`. Objects handed over are not edited and may share
    parts with stored ones; objects returned are those in the store. Every method may raise `ApiError`.
    """

    def create(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Create an object, or post it to a sub-resource of the object it names (`binding`, `eviction`)."""

    def update(self, storage: str, obj: KubeObject, now: Instant, *, subresource: str = "") -> KubeObject:
        """Put `obj` in the place of what is there, whatever its version; `subresource` is `status`, `finalize`, …."""

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
        """Delete the object at `key`; only if it is the one with this `uid`, when one is given."""


class BulkClient(Client, Protocol):
    """A client that creates many objects like one another at little more than the cost of one."""

    def create_copies(
        self, storage: str, template: KubeObject, keys: Sequence[Key], uids: Sequence[str], now: Instant
    ) -> None:
        """Create an object like `template` for each of `keys`, all of one namespace, with these uids.

        If one of them is refused, those before it are there.
        """
