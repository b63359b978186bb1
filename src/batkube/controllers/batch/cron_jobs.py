"""CronJobs: create Jobs on schedule, and delete old ones.

Kubernetes: pkg/controller/cronjob/cronjob_controllerv2.go.
"""

from __future__ import annotations

import datetime
import email.utils
from collections.abc import Sequence

from batkube.cluster.client import ApiError, Client
from batkube.cluster.cron.parser import InvalidSchedule, parse_schedule
from batkube.cluster.cron.schedules import Schedule
from batkube.cluster.cron.time_zones import UnknownZone, zone_of
from batkube.cluster.event_recorder import EventRecorder
from batkube.cluster.object_meta import controller_reference, has_condition, is_being_deleted, key_of
from batkube.cluster.store import Change, Key, KubeObject
from batkube.cluster.world import World
from batkube.controllers.batch.jobs import JOB, is_finished
from batkube.controllers.framework.controller import Controller
from batkube.controllers.framework.owner_index import OwnerIndex
from batkube.controllers.framework.pod_control import owner_key
from batkube.kernel.instants import (
    EPOCH,
    NANOSECONDS_PER_SECOND,
    UNIX_START,
    Duration,
    Instant,
    bounded_seconds,
    instant_of,
    rfc3339,
    seconds,
)
from batkube.text.go_format import go_quote

CRON_JOB = "cronjobs.batch"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
#: Added to the time of the next reconciliation, so that the scheduled time has certainly passed (Kubernetes:
#: nextScheduleDelta).
_DELTA: Duration = seconds("0.1")
_UNSUPPORTED_ZONE = (
    "CRON_TZ or TZ used in schedule {} is not officially supported, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
#: Kubernetes' message for a schedule without dates: it compares two zero times.
_NO_DATES_MESSAGE = "time difference between two schedules is less than 1 second"


class CronJobController(Controller):
    """Creates the Jobs of CronJobs."""

    storage = CRON_JOB

    def __init__(self, world: World, client: Client, events: EventRecorder, jobs: OwnerIndex) -> None:
        super().__init__(world, client, events)
        self._jobs = jobs
        jobs.subscribe(self._on_job_changed)

    def _on_job_changed(self, controller: KubeObject | None, change: Change, now: Instant) -> None:
        owner = owner_key(controller, "batch", "CronJob", change.key)
        if owner is not None:
            self.queue.add(owner, now)

    def reconcile(self, key: Key, cron_job: KubeObject, now: Instant) -> None:
        """Create the Job that is due, and delete old ones."""
        jobs = self._jobs.owned_by(cron_job["metadata"]["uid"])
        self._clean_up_finished_jobs(cron_job, jobs, now)
        status = self._sync_status(cron_job, jobs, now)
        if not is_being_deleted(cron_job) and not cron_job["spec"].get("suspend"):
            schedule = self._parse_schedule(cron_job, now)
            if schedule is not None:
                self._start_due({**cron_job, "status": status}, schedule, status, now)
                self._requeue_at_next_schedule(key, {**cron_job, "status": status}, schedule, now)
        self.write_status(cron_job, {name: value for name, value in status.items() if value}, now)

    def _parse_schedule(self, cron_job: KubeObject, now: Instant) -> Schedule | None:
        """Return the schedule in its time zone; record an event and return None if it is invalid."""
        text, zone = cron_job["spec"]["schedule"], cron_job["spec"].get("timeZone")
        try:
            zone_of(zone or "")
            schedule = parse_schedule(f"TZ={zone} {text}" if zone and "TZ" not in text else text)
        except UnknownZone as error:
            self.record_event(
                cron_job, "Warning", "UnknownTimeZone", f"invalid timeZone: {go_quote(zone)}: {error}", now
            )
            return None
        except InvalidSchedule as error:
            message = f"unparseable schedule: {go_quote(text)} : {error}"
            self.record_event(cron_job, "Warning", "UnparseableSchedule", message, now)
            return None
        if "TZ" in text:
            self.record_event(cron_job, "Warning", "UnsupportedSchedule", _UNSUPPORTED_ZONE.format(go_quote(text)), now)
        if schedule.next_after(now) is None:
            self.record_event(
                cron_job, "Warning", "InvalidSchedule", f"invalid schedule: {text} : {_NO_DATES_MESSAGE}", now
            )
            return None
        return schedule

    def _sync_status(self, cron_job: KubeObject, jobs: Sequence[KubeObject], now: Instant) -> KubeObject:
        """Return the status updated from the existing Jobs."""
        status = dict(cron_job.get("status", {}))
        by_uid = {job["metadata"]["uid"]: job for job in jobs}
        active = []
        for reference in status.get("active") or ():
            job = by_uid.get(reference["uid"])
            if job is None:
                self.record_event(
                    cron_job, "Normal", "MissingJob", f"Active job went missing: {reference['name']}", now
                )
            elif is_finished(job):
                condition = "Complete" if has_condition(job, "Complete") else "Failed"
                message = f"Saw completed job: {reference['name']}, condition: {condition}"
                self.record_event(cron_job, "Normal", "SawCompletedJob", message, now)
            else:
                active.append(reference)
        status["active"] = active
        completion_times = [job["status"].get("completionTime") for job in jobs if has_condition(job, "Complete")]
        status["lastSuccessfulTime"] = max(
            (time for time in [*completion_times, status.get("lastSuccessfulTime")] if time), default=None
        )
        return status

    def _start_due(self, cron_job: KubeObject, schedule: Schedule, status: KubeObject, now: Instant) -> None:
        """Create the Job that is due, unless a deadline or the concurrency policy prevents it.

        Kubernetes: syncCronJob.
        """
        spec = cron_job["spec"]
        due = _most_recent_schedule_time(cron_job, schedule, now)
        if due is None or rfc3339(due) == status.get("lastScheduleTime"):
            return
        deadline_s = spec.get("startingDeadlineSeconds")
        if deadline_s is not None and due + bounded_seconds(deadline_s) < now:
            self.record_event(
                cron_job,
                "Warning",
                "MissSchedule",
                f"Missed scheduled time to start a job: {_format_rfc1123z(due)}",
                now,
            )
            return
        policy = spec.get("concurrencyPolicy", "Allow")
        if policy == "Forbid" and status["active"]:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.record_event(cron_job, "Normal", "JobAlreadyActive", message, now)
            return
        if policy == "Replace":
            for reference in status["active"]:
                self._delete(cron_job, reference["name"], now)
            status["active"] = []
        job = self._create(cron_job, due, now)
        if job is not None:
            status["active"] = [*status["active"], self._job_reference(job)]
            status["lastScheduleTime"] = rfc3339(due)

    def _create(self, cron_job: KubeObject, due: Instant, now: Instant) -> KubeObject | None:
        try:
            job = self.client.create(JOB, _job_from_template(cron_job, due), now)
        except ApiError as error:
            if error.reason == "AlreadyExists":
                return None
            self.record_event(cron_job, "Warning", "FailedCreate", f"Error creating job: {error.message}", now)
            raise
        self.record_event(cron_job, "Normal", "SuccessfulCreate", f"Created job {job['metadata']['name']}", now)
        return job

    def _job_reference(self, job: KubeObject) -> KubeObject:
        metadata = job["metadata"]
        return {
            "kind": "Job",
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "apiVersion": "batch/v1",
            "resourceVersion": str(self.store.version_of(JOB, key_of(job)) or ""),
        }

    def _requeue_at_next_schedule(self, key: Key, cron_job: KubeObject, schedule: Schedule, now: Instant) -> None:
        following = schedule.next_after(max(_most_recent_schedule_time(cron_job, schedule, now) or now, now))
        if following is not None:
            self.queue.add_after(key, now, Duration(following + _DELTA - now))

    def _clean_up_finished_jobs(self, cron_job: KubeObject, jobs: Sequence[KubeObject], now: Instant) -> None:
        """Delete the oldest finished Jobs beyond the history limits (Kubernetes: cleanupFinishedJobs)."""
        spec = cron_job["spec"]
        for kind, limit in (
            ("Complete", spec.get("successfulJobsHistoryLimit", 3)),
            ("Failed", spec.get("failedJobsHistoryLimit", 1)),
        ):
            finished = [job for job in jobs if has_condition(job, kind) and not is_being_deleted(job)]
            finished.sort(key=lambda job: (job["status"].get("startTime", ""), job["metadata"]["name"]))
            for job in finished[: max(0, len(finished) - limit)]:
                self._delete(cron_job, job["metadata"]["name"], now)

    def _delete(self, cron_job: KubeObject, name: str, now: Instant) -> None:
        key = Key(f"{cron_job['metadata']['namespace']}/{name}")
        try:
            self.client.delete(JOB, key, now, propagation="Background")
        except ApiError as error:
            self.record_event(cron_job, "Warning", "FailedDelete", f"Deleted job: {error.message}", now)
            return
        self.record_event(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name}", now)


def _most_recent_schedule_time(cron_job: KubeObject, schedule: Schedule, now: Instant) -> Instant | None:
    """Return the latest scheduled time that has passed and has no Job yet, or None.

    Missed times are skipped in one step, a multiple of the first interval minus one. This keeps the phase of `@every`
    (Kubernetes: cronjob/utils.go, mostRecentScheduleTime).
    """
    status, spec = cron_job.get("status", {}), cron_job["spec"]
    earliest = instant_of(status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
    if "startingDeadlineSeconds" in spec:
        earliest = max(earliest, Instant(now - bounded_seconds(spec["startingDeadlineSeconds"])))
    first = schedule.next_after(earliest)
    if first is None or now < first:
        return None
    second = schedule.next_after(first)
    if second is None or now < second:
        return first
    interval = second - first
    latest, following = None, schedule.next_after(Instant(first + ((now - first) // interval - 1) * interval))
    while following is not None and following <= now:
        latest, following = following, schedule.next_after(following)
    return latest


def _job_from_template(cron_job: KubeObject, due: Instant) -> KubeObject:
    # Kubernetes: cronjob/utils.go, getJobFromTemplate2.
    template, metadata = cron_job["spec"]["jobTemplate"], cron_job["metadata"]
    job_metadata = template.get("metadata") or {}
    unix_s = (due - UNIX_START) // NANOSECONDS_PER_SECOND
    zone = zone_of(cron_job["spec"].get("timeZone") or "")
    local = (EPOCH + datetime.timedelta(seconds=due // NANOSECONDS_PER_SECOND)).astimezone(zone)
    fields = {
        "name": f"{metadata['name'][:52]}-{unix_s // 60}",
        "namespace": metadata["namespace"],
        "labels": job_metadata.get("labels"),
        "annotations": {
            **(job_metadata.get("annotations") or {}),
            SCHEDULED_AT: local.isoformat().replace("+00:00", "Z"),
        },
        "ownerReferences": [controller_reference(cron_job)],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {name: value for name, value in fields.items() if value},
        "spec": template["spec"],
    }


def _format_rfc1123z(at: Instant) -> str:
    """Format an instant as Go's RFC1123Z: `Mon, 02 Jan 2006 15:04:05 -0700`."""
    return email.utils.format_datetime(EPOCH + datetime.timedelta(seconds=at // NANOSECONDS_PER_SECOND))
