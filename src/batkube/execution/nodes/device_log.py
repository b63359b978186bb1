"""Records which ResourceClaim held which device, and when."""

from __future__ import annotations

from batkube.cluster.pods.device_claims import DEVICE_CLAIM, DeviceUse, is_allocated
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant


class DeviceLog:
    """Records the allocations of ResourceClaims."""

    def __init__(self, world: World) -> None:
        #: In order of allocation.
        self.uses: list[DeviceUse] = []
        #: The current uses of each claim.
        self._current_uses: dict[Key, list[DeviceUse]] = {}
        world.store.subscribe(DEVICE_CLAIM, self._on_claims_changed)

    def _on_claims_changed(self, batch: Batch, now: Instant) -> None:
        for key, claim in zip(batch.keys, batch.objects, strict=True):
            if batch.type is not DELETED and is_allocated(claim):
                self._record_allocation(key, claim["status"], now)
            else:
                for use in self._current_uses.pop(key, ()):
                    use.until = now

    def _record_allocation(self, key: Key, status: KubeObject, now: Instant) -> None:
        if key not in self._current_uses:
            results = (status["allocation"].get("devices") or {}).get("results") or ()
            # Admin access does not keep a device from other claims.
            devices = [result for result in results if not result.get("adminAccess")]
            uses = [DeviceUse(device["driver"], device["pool"], device["device"], key, now) for device in devices]
            self._current_uses[key] = uses
            self.uses += uses
        for use in self._current_uses[key]:
            use.pods |= dict.fromkeys(consumer["name"] for consumer in status.get("reservedFor") or ())
