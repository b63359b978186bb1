"""Jobs: run pods to completion and replace failed ones, until enough have succeeded.

Kubernetes: pkg/controller/job/job_controller.go. A finalizer protects pods until they are counted. Their uids are first
recorded in the status, then the finalizers are removed, then the counters are increased, so that each pod counts once.
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.client import ApiError, Client, ignore_not_found
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import condition_of, has_condition, is_being_deleted, key_of, without_finalizer
from batkube.cluster.pods.accessors import is_ready
from batkube.cluster.store import DELETED, Batch, Change, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.batch.job_completion import completion_condition, early_end_condition
from batkube.controllers.batch.job_pods import plan_creations, pods_to_delete
from batkube.controllers.batch.job_sync import FINALIZER, JobSync, has_finalizer, is_suspended, job_condition
from batkube.controllers.batch.pod_failures import BackoffRecord
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.controllers.framework.pod_control import POD, PodControl, claim_objects, owner_key
from batkube.controllers.framework.work_queue import WorkQueue
from batkube.kernel.instants import Duration, Instant, bounded_seconds, instant_of, rfc3339, seconds

JOB = "jobs.batch"
_CONTROLLER_NAME = "kubernetes.io/job-controller"
#: Maximum number of pods to count, create or delete in one reconciliation.
_MAX_PODS_PER_SYNC = 500
#: Changes of pods are batched for this long before the Job is reconciled (Kubernetes: SyncJobBatchPeriod).
_SYNC_BATCH_PERIOD: Duration = seconds(1)
_FINAL_CONDITIONS = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}


class JobController(Controller):
    """Creates, deletes and counts the pods of Jobs."""

    storage = JOB

    def __init__(self, world: World, client: Client, events: EventRecorder, pods: OwnerIndex) -> None:
        super().__init__(world, client, events)
        self._pods = pods
        self._pod_control = PodControl(world.agenda, client, events, JOB)
        self._orphans = WorkQueue(world, self._sync_orphan_pod)
        #: Failures of each Job since its last success; they determine the back-off delay.
        self._failures: dict[Key, BackoffRecord] = {}
        pods.subscribe(self._on_pod_changed)

    # Subscriptions

    def on_objects_changed(self, batch: Batch, now: Instant) -> None:
        """Queue changed Jobs, without delay if their spec changed; queue the pods of deleted Jobs."""
        for change in batch.changes():
            key, metadata, previous = change.key, change.object["metadata"], change.previous
            if batch.type is DELETED:
                self._failures.pop(key, None)
                self.queue.expedite(key, now)
                for pod in self._pods.owned_by(metadata["uid"]):
                    self._orphans.add(key_of(pod), now)
            elif previous is not None and previous["metadata"].get("generation") == metadata.get("generation"):
                self.queue.add_after(key, now, _SYNC_BATCH_PERIOD)
            else:
                self.queue.add(key, now)

    def _on_pod_changed(self, controller: KubeObject | None, change: Change, now: Instant) -> None:
        owner = owner_key(controller, "batch", "Job", change.key)
        if owner is not None:
            self.queue.add_after(owner, now, _SYNC_BATCH_PERIOD)
        if change.type is not DELETED and has_finalizer(change.object) and is_being_deleted(change.object):
            self._orphans.add(change.key, now)

    def _sync_orphan_pod(self, key: Key, now: Instant) -> None:
        """Remove the finalizer of a pod whose Job no longer counts it (Kubernetes: syncOrphanPod)."""
        pod = self.store.get(POD, key)
        if pod is None or not has_finalizer(pod):
            return
        for reference in pod["metadata"].get("ownerReferences", ()):
            if (owner := owner_key(reference, "batch", "Job", key)) is not None:
                job = self.store.get(JOB, owner)
                if job is not None and job["metadata"]["uid"] == reference["uid"] and not is_finished(job):
                    return
        self._remove_finalizer(pod, now)

    # Reconciliation

    def reconcile(self, key: Key, job: KubeObject, now: Instant) -> None:
        """Create, delete and count pods, and set the final condition."""
        if is_finished(job) or job["spec"].get("managedBy", _CONTROLLER_NAME) != _CONTROLLER_NAME:
            return
        sync = JobSync(job, claim_objects(self.client, self._pods, job, now, finalizer=FINALIZER))
        if not sync.status.get("startTime") and not is_suspended(job):
            sync.status["startTime"] = rfc3339(now)
        failures = self._failures.get(key, BackoffRecord()).updated(sync.new_succeeded, sync.new_failed)
        self._failures[key] = failures
        sync.finished_condition = early_end_condition(sync, now)
        self._requeue_at_deadline(key, sync, now)
        active, problem = len(sync.active), None
        if sync.finished_condition is not None:
            active, problem = self._delete_active(sync, now)
        else:
            if not is_being_deleted(job):
                active, problem = self._manage_pods(key, sync, failures, now)
            sync.finished_condition = completion_condition(sync, active, now)
            if sync.finished_condition is None:
                self._update_suspended_condition(sync, now)
        self._track_finished_pods(sync, active, now)
        if problem is not None:
            raise problem

    def _requeue_at_deadline(self, key: Key, sync: JobSync, now: Instant) -> None:
        limit_s = sync.spec.get("activeDeadlineSeconds")
        if limit_s is not None and sync.finished_condition is None and not is_suspended(sync.job):
            due = instant_of(sync.status["startTime"]) + bounded_seconds(limit_s)
            self.queue.add_after(key, now, Duration(max(0, due - now)))

    # Pods

    def _delete_active(self, sync: JobSync, now: Instant) -> tuple[int, ApiError | None]:
        """Delete the active pods of a Job that ends; the Job only ends if all deletions succeed.

        Kubernetes: deleteActivePods.
        """
        remaining, problem = self._delete_pods(sync, sync.active, now)
        if remaining:
            sync.finished_condition = None
        return remaining, problem

    def _manage_pods(
        self, key: Key, sync: JobSync, failures: BackoffRecord, now: Instant
    ) -> tuple[int, ApiError | None]:
        """Create or delete pods until the desired number is active; return the number of active pods."""
        victims = pods_to_delete(sync)[:_MAX_PODS_PER_SYNC]
        if victims:
            return self._delete_pods(sync, victims, now, is_counted=False)
        plan = plan_creations(sync, failures, now)
        if plan.wait:
            self.queue.add_after(key, now, max(plan.wait, _SYNC_BATCH_PERIOD))
        if not plan.templates:
            return len(sync.active), None
        created, problem = self._pod_control.create_many(sync.job, plan.templates[:_MAX_PODS_PER_SYNC], now)
        return len(sync.active) + created, problem

    def _delete_pods(
        self, sync: JobSync, victims: Sequence[KubeObject], now: Instant, *, is_counted: bool = True
    ) -> tuple[int, ApiError | None]:
        """Delete active pods; return how many remain. If they are not counted, remove their finalizers first."""
        remaining, problem = len(sync.active), None
        for pod in victims:
            try:
                if not is_counted:
                    self._remove_finalizer(pod, now)
                self._pod_control.delete(sync.job, pod, now)
            except ApiError as error:
                problem = problem or error
                continue
            remaining -= 1
            sync.terminating += 1
            sync.ready -= is_ready(pod)
        return remaining, problem

    def _remove_finalizer(self, pod: KubeObject, now: Instant) -> None:
        with ignore_not_found():
            self.client.update(POD, without_finalizer(pod, FINALIZER), now)

    # Status

    def _update_suspended_condition(self, sync: JobSync, now: Instant) -> None:
        """Set the condition Suspended; when a Job is resumed, startTime is reset."""
        suspended = is_suspended(sync.job)
        old = next((condition for condition in sync.conditions if condition["type"] == "Suspended"), None)
        status = "True" if suspended else "False"
        if (old is None and not suspended) or (old is not None and old["status"] == status):
            return
        verb = "suspended" if suspended else "resumed"
        new = job_condition("Suspended", status, f"Job{verb.capitalize()}", f"Job {verb}", now)
        sync.conditions = (
            [new if condition is old else condition for condition in sync.conditions]
            if old
            else [*sync.conditions, new]
        )
        self.record_event(sync.job, "Normal", verb.capitalize(), f"Job {verb}", now)
        if not suspended:
            sync.status["startTime"] = rfc3339(now)

    def _track_finished_pods(self, sync: JobSync, active: int, now: Instant) -> None:
        """Count finished pods, remove their finalizers, and finish the Job once all are counted.

        Kubernetes: trackJobStatusAndRemoveFinalizers.
        """
        tracked = [pod for pod in sync.pods if has_finalizer(pod)]
        tracked_uids = {pod["metadata"]["uid"] for pod in tracked}
        sync.flush_uncounted(
            [uid for uid in (*sync.uncounted_succeeded, *sync.uncounted_failed) if uid not in tracked_uids]
        )
        releasable = [pod for pod in tracked if sync.can_remove_finalizer(pod)]
        is_partial, releasable = len(releasable) > _MAX_PODS_PER_SYNC, releasable[:_MAX_PODS_PER_SYNC]
        sync.record_uncounted(releasable)
        final = self._record_interim_condition(sync, now)
        self._write_job_status(sync, active, now)
        for pod in releasable:
            self._remove_finalizer(pod, now)
        sync.flush_uncounted([pod["metadata"]["uid"] for pod in releasable])
        uncounted = sync.uncounted_succeeded or sync.uncounted_failed
        if final is not None and not is_partial and not uncounted and not sync.terminating:
            sync.conditions.append(final)
            if final["type"] == "Complete":
                sync.status["completionTime"] = final["lastTransitionTime"]
        else:
            final = None
        self._write_job_status(sync, active, now)
        if final is not None:
            self._record_end_event(sync, final, now)

    def _record_interim_condition(self, sync: JobSync, now: Instant) -> KubeObject | None:
        """Record the interim condition (SuccessCriteriaMet or FailureTarget), and return the final condition."""
        interim = sync.finished_condition
        if interim is None:
            return None
        if interim["type"] in _FINAL_CONDITIONS:
            if not any(condition["type"] == interim["type"] for condition in sync.conditions):
                sync.conditions.append(interim)
            return job_condition(_FINAL_CONDITIONS[interim["type"]], "True", interim["reason"], interim["message"], now)
        return interim

    def _write_job_status(self, sync: JobSync, active: int, now: Instant) -> None:
        sync.job = self.write_status(sync.job, sync.build_status(active), now)

    def _record_end_event(self, sync: JobSync, condition: KubeObject, now: Instant) -> None:
        # Kubernetes: recordJobFinished.
        if condition["type"] == "Complete":
            if sync.completions is not None and sync.status.get("succeeded", 0) > sync.completions:
                message = "Too many succeeded pods running after completion count reached"
                self.record_event(sync.job, "Warning", "TooManySucceededPods", message, now)
            self.record_event(sync.job, "Normal", "Completed", "Job completed", now)
        else:
            self.record_event(sync.job, "Warning", condition["reason"], condition["message"], now)


def is_finished(job: KubeObject) -> bool:
    """Return whether the Job has completed or failed."""
    return has_condition(job, "Complete") or has_condition(job, "Failed")


class TtlAfterFinishedController(Controller):
    """Deletes finished Jobs after ttlSecondsAfterFinished (pkg/controller/ttlafterfinished)."""

    storage = JOB

    def should_reconcile(self, job: KubeObject) -> bool:
        """Return whether a Job is finished and has a TTL."""
        return "ttlSecondsAfterFinished" in job["spec"] and is_finished(job)

    def reconcile(self, key: Key, job: KubeObject, now: Instant) -> None:
        """Delete a finished Job whose TTL has expired."""
        if "ttlSecondsAfterFinished" not in job["spec"] or is_being_deleted(job):
            return
        final_condition = condition_of(job, "Complete") or condition_of(job, "Failed")
        if final_condition is None:
            return
        due = instant_of(final_condition["lastTransitionTime"]) + seconds(job["spec"]["ttlSecondsAfterFinished"])
        if due > now:
            self.queue.add_after(key, now, Duration(due - now))
            return
        self.client.delete(JOB, key, now, propagation="Foreground", uid=job["metadata"]["uid"])
