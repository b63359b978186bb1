"""Who held which device, and when: a book of what schedulers give to claims, and of what is given back."""

from __future__ import annotations

from batkube.cluster.pods.device_claims import DEVICE_CLAIM, DeviceUse, is_allocated
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant


class DeviceLog:
    """Listens to claims."""

    def __init__(self, world: World) -> None:
        #: In the order in which devices were given away.
        self.uses: list[DeviceUse] = []
        #: What each claim holds now.
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
            # Who only administers a device does not keep it from others.
            taken = [one for one in results if not one.get("adminAccess")]
            uses = [DeviceUse(one["driver"], one["pool"], one["device"], key, now) for one in taken]
            self._current_uses[key] = uses
            self.uses += uses
        for use in self._current_uses[key]:
            use.pods |= dict.fromkeys(one["name"] for one in status.get("reservedFor") or ())
