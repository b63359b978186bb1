"""Who held which device, and when: a book of what schedulers give to claims, and of what is given back."""

from __future__ import annotations

from batkube.cluster.device_claims import DEVICE_CLAIM, DeviceUse, has_devices
from batkube.cluster.store import DELETED, Batch, Key, KubeObject
from batkube.cluster.world import World
from batkube.kernel.instants import Instant


class DeviceBook:
    """Listens to claims."""

    def __init__(self, world: World) -> None:
        #: In the order in which devices were given away.
        self.uses: list[DeviceUse] = []
        #: What each claim holds now.
        self._held: dict[Key, list[DeviceUse]] = {}
        world.store.listen(DEVICE_CLAIM, self._hear)

    def _hear(self, batch: Batch, now: Instant) -> None:
        for key, claim in zip(batch.keys, batch.objects, strict=True):
            if batch.type is not DELETED and has_devices(claim):
                self._hold(key, claim["status"], now)
            else:
                for use in self._held.pop(key, ()):
                    use.until = now

    def _hold(self, key: Key, status: KubeObject, now: Instant) -> None:
        if key not in self._held:
            results = (status["allocation"].get("devices") or {}).get("results") or ()
            # Who only administers a device does not keep it from others.
            taken = [one for one in results if not one.get("adminAccess")]
            uses = [DeviceUse(one["driver"], one["pool"], one["device"], key, now) for one in taken]
            self._held[key] = uses
            self.uses += uses
        for use in self._held[key]:
            use.pods |= dict.fromkeys(one["name"] for one in status.get("reservedFor") or ())
