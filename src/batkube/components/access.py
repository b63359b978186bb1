"""Select how the components of a cluster write: through the API, or directly to the store.

Components write through the API, and objects are complete, if a run has anything besides policies (an external program,
a controller, an object, a client). Otherwise nothing could observe the difference, and a write to the store costs a
tenth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from batkube.cluster.client import BulkClient
from batkube.cluster.store_client import StoreClient
from batkube.cluster.world import World

ClientFor = Callable[[str], BulkClient]
"""Returns the client of a component, given its name."""


@dataclass(frozen=True, slots=True)
class Access:
    """The clients of a cluster's components."""

    client: ClientFor
    #: Whether components write through the API, and objects are complete.
    is_api: bool

    @staticmethod
    def of_world(world: World, api_client: ClientFor | None) -> Access:
        """Return the access through the API, or to the store if the world has no API."""
        if api_client is not None:
            return Access(api_client, is_api=True)
        client = StoreClient(world.store)
        return Access(lambda component: client, is_api=False)
