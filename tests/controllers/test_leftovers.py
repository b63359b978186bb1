"""Creating and deleting objects of many kinds, as in hours of Kubernetes' test suite, leaks no memory."""

from __future__ import annotations

import gc

from tests.controllers.batch.test_cron_jobs import cron_job
from tests.simulated_cluster import Cluster

YEAR_S = 31_536_000
#: Objects by which bounded caches may grow. A leaked pod would be a hundred objects.
GROWTH_PER_ROUND = 10


def create_and_delete_objects(world: Cluster, number: int) -> None:
    """Create an object of each kind with a new name, and delete it long before it ends."""
    script = {"command": ["sh", "-c", f"touch /data/a; sleep {YEAR_S}"]}
    mounts = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{number}"}}
    pod = world.pod(f"long-{number}", volumes=[volume], activeDeadlineSeconds=2 * YEAR_S)
    pod["spec"]["containers"][0] |= script | mounts
    claim = {"metadata": {"name": f"claim-{number}", "namespace": "default"}, "spec": {}}
    cron = cron_job(world, schedule="0 0 1 1 *")
    cron["metadata"]["name"] = f"tick-{number}"
    year = {"batkube.io/duration": f"{YEAR_S}s"}
    objects = (
        ("persistentvolumeclaims", {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim}),
        ("pods", pod),
        ("pods", world.pod(f"lost-{number}", nodeName=f"absent-{number}")),
        ("deployments.apps", world.deployment(f"web-{number}", replicas=2)),
        ("jobs.batch", world.job(f"late-{number}", year, activeDeadlineSeconds=YEAR_S)),
        ("jobs.batch", world.job(f"short-{number}", ttlSecondsAfterFinished=YEAR_S)),
        ("cronjobs.batch", cron),
    )
    keys = [(storage, world.create(storage, obj)) for storage, obj in objects]
    world.run(35)
    assert len(world.pods("Running")) == 4
    for storage, key in reversed(keys):
        world.delete(storage, key)
    world.run(90)
    assert not any(world.store.entries(storage) for storage, _ in objects)
    for key in list(world.store.entries("events")):
        world.delete("events", key)


def live_objects(world: Cluster) -> int:
    """Return the number of Python objects, without the history of the store."""
    world.store.compact()
    gc.collect()
    return len(gc.get_objects())


def test_deleted_objects_are_not_leaked(world: Cluster) -> None:
    for number in range(10):
        create_and_delete_objects(world, number)
    before, appointments = live_objects(world), len(world.world.agenda)

    for number in range(10, 60):
        create_and_delete_objects(world, number)
    growth = live_objects(world) - before

    assert len(world.world.agenda) <= appointments
    assert growth < 50 * GROWTH_PER_ROUND


def test_a_new_claim_of_an_old_name_has_no_files(world: Cluster) -> None:
    script = "if [ -r /data/a ]; then exit 0; else touch /data/a; exit 42; fi"
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {}}
    claim["metadata"] = {"name": "c", "namespace": "default"}

    def phase(name: str) -> str:
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
        pod = world.pod(name, volumes=[volume], restart="Never")
        mounts = [{"name": "data", "mountPath": "/data"}]
        pod["spec"]["containers"][0] |= {"command": ["sh", "-c", script], "volumeMounts": mounts}
        key = world.create("pods", pod)
        world.run(10)
        result: str = world.get("pods", key)["status"]["phase"]
        world.delete("pods", key)
        return result

    key = world.create("persistentvolumeclaims", claim)
    phases = [phase("first"), phase("second")]
    world.delete("persistentvolumeclaims", key)
    world.run(10)
    world.create("persistentvolumeclaims", claim)

    assert [*phases, phase("third")] == ["Failed", "Succeeded", "Failed"]
