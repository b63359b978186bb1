"""Our cluster as a Batsim: a scheduler that speaks Batsim's protocol decides for it, as a policy.

The actors of a Batsim talk to the scheduler, as in `batkube batsim`; but jobs arrive when their pods do, and are
carried out by the cluster. What the scheduler wants done becomes a policy's decision, so that there is one way to bind;
how a job ended is known from its outcome. Time is the cluster's: it goes on to what the actors wait for, as to
everything else that is due.

A job that is killed has ended, and so has one whose node failed: Batsim knows no second try.
"""

from __future__ import annotations

import functools
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from batkube.batsim.protocol.messages import ExecuteJob, Notify
from batkube.batsim.schedulers.cluster_power import ClusterPower, NoPower
from batkube.batsim.server.actions import SchedulerActions
from batkube.batsim.server.batsim_server import MACHINE_AVAILABLE, MACHINE_UNAVAILABLE, BatsimServer
from batkube.batsim.server.conversation import Conversation, SchedulerConnection
from batkube.batsim.server.simulation_description import describe_simulation
from batkube.batsim.server.submitters import END_NOTIFICATIONS, JOBS, announce
from batkube.batsim.simgrid.actors import ActorCode, ActorKernel
from batkube.batsim.simgrid.mailboxes import Mailbox
from batkube.batsim.simgrid.signals import ActorSignal
from batkube.batsim.state.jobs import JobRegistry, JobState, LiveJob
from batkube.batsim.state.machines import LiveMachine, Machines
from batkube.batsim.state.options import Options
from batkube.batsim.state.progress import JobProgress
from batkube.cluster.decisions import Decision
from batkube.cluster.jobs.outcomes import FinalState, Outcome
from batkube.cluster.mapping import ResourceModel
from batkube.execution.profiles.energy_log import EnergyLog
from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.instants import Duration, Instant
from batkube.kernel.intervals import mask_of, members
from batkube.kernel.quantities import PODS
from batkube.platforms.model import Machine
from batkube.policies.interface import Evict, Policy, Reject, Start, View, WakeAt
from batkube.workloads.formats.batsim.documents import BatsimDocument
from batkube.workloads.model import Job, Profile

SubmitJob = Callable[[Job, Instant], None]
"""Lets a job arrive that no workload has."""

_MASTER = "master_host"
#: What a job counts as long that took no time, as in Batsim.
_SHORTEST_LENGTH = Duration(10_000)
_RETURN_CODES = {FinalState.SUCCESS: 0, FinalState.FAILED: 1, FinalState.WALLTIME: -1, FinalState.KILLED: -1}


class BatsimScheduler(Policy):
    """A policy whose decisions are those of a scheduler at the other end of a wire."""

    watches_machines = True

    def __init__(self, spec: str, options: Options) -> None:
        """`spec` says where the scheduler is: an endpoint, or the command that starts it."""
        self.spec = spec
        self._options = options
        #: Given before the first decision.
        self._scheduler: SchedulerConnection | None = None
        self._documents: Mapping[str, BatsimDocument] = {}
        self._submit: SubmitJob = lambda job, now: None
        self._book: EnergyLog | None = None
        self._batsim: _ClusterBatsim | None = None
        self._outcomes: dict[str, Outcome] = {}
        #: Has it asked at an instant, when a job has said something.
        self.wake_at: Callable[[Instant], None] = lambda at: None

    def connect(
        self,
        scheduler: SchedulerConnection,
        documents: Mapping[str, BatsimDocument],
        submit: SubmitJob,
        book: EnergyLog | None,
    ) -> None:
        """Take up what a run gives: the wire, the workloads, who lets further jobs arrive, and the book of energy."""
        self._scheduler, self._documents, self._submit, self._book = scheduler, documents, submit, book

    def check(self, model: ResourceModel) -> None:
        """Refuse to share machines where a job gets whole ones. Raises InputError."""
        if self._options.allows_compute_sharing and model is ResourceModel.MACHINES:
            raise InputError(
                "--scheduler-arg enable-compute-sharing",
                problem="jobs of this run get whole machines, which cannot be shared",
                remedy="add --resources requests, or leave the argument out",
            )

    # Messages of jobs

    def send(self, job: Job, message: object, now: Instant) -> None:
        """Take what a job says to the scheduler, which hears it at this instant."""
        assert self._batsim is not None, "jobs that speak have been started"
        self._batsim.job_messages.append((job.key, message))
        self.wake_at(now)

    def inbox(self, job: Job) -> deque[str]:
        """Return what the scheduler has said to a job."""
        assert self._batsim is not None, "jobs that listen have been started"
        return self._batsim.workloads.job(job.key).inbox

    def profile(self, job: Job, name: str) -> Profile:
        """Return the profile that a job goes on with."""
        assert self._batsim is not None, "jobs that listen have been started"
        chosen = self._batsim.workloads.profile(job.workload, name)
        if chosen is None:
            raise RunFailed(f"job {job.key} goes on with the profile {name!r}, which no job of its workload uses")
        return chosen

    def on_job_ended(self, outcome: Outcome) -> None:
        """Take note of how a job ended."""
        self._outcomes[outcome.job.key] = outcome

    @property
    def expects_jobs(self) -> bool:
        """Whether the scheduler may still register jobs."""
        return self._options.has_dynamic_jobs and (self._batsim is None or not self._batsim.server.is_registration_over)

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Meet the machines, or hear that some have gone or come back."""
        super().begin(machines, rng)
        if self._batsim is None:
            assert self._scheduler is not None, "a run connects its scheduler first"
            self._batsim = _ClusterBatsim(
                machines, self._documents, self._options, self._scheduler, self._submit, self._book
            )
        else:
            self._batsim.present = _available_mask(machines)

    def decide(self, view: View) -> Iterator[Decision]:
        """Tell the scheduler what happened, and yield what it decides."""
        cast = self._batsim
        assert cast is not None, "machines come before decisions"
        while (due := cast.scene.due) is not None and due < view.now:
            cast.scene.step(due)
        cast.scene.advance_to(view.now)
        cast.on_pods_created(view.arrived)
        cast.report_machines()
        cast.report_job_messages()
        for job in view.ended:
            outcome = self._outcomes.pop(job.key, None)
            cast.on_job_ended(job, outcome)
        yield from cast.decisions(view)
        while (due := cast.scene.due) is not None and due <= view.now:
            cast.scene.step(due)
            yield from cast.decisions(view)
        if due is not None:
            yield WakeAt(due)

    def close(self) -> None:
        """Let the scheduler know that the simulation is over, after the calls it is still waiting for."""
        cast = self._batsim
        while cast is not None and not cast.server.is_over and (due := cast.scene.due) is not None:
            cast.scene.step(due)


class _NullRecorder:
    """Writes nothing down: the run's own files tell of jobs."""

    def record(self, live: LiveJob) -> None:
        """A job is over."""


class _ClusterBatsim:
    """The actors of a Batsim whose jobs a cluster carries out."""

    def __init__(
        self,
        machines: Sequence[Machine],
        documents: Mapping[str, BatsimDocument],
        options: Options,
        scheduler: SchedulerConnection,
        submit: SubmitJob,
        book: EnergyLog | None,
    ) -> None:
        self.scene = ActorKernel()
        self._submit = submit
        self._options = options
        self._mailbox = Mailbox()
        self._machines = Machines(
            [
                LiveMachine(machine.id, machine.name, {"role": "", **machine.properties}, machine.zone_properties)
                for machine in machines
            ],
            _MASTER,
        )
        #: The machines that take jobs: as far as the scheduler knows, and now.
        self._reported = self.present = _available_mask(machines)
        self.workloads = JobRegistry(documents, keeps_profiles=options.keeps_profiles)
        self._unsubmitted_count = sum(len(document.workload.jobs) for document in documents.values())
        self._arrival_signal, self._event_signal, self._message_signal = ActorSignal(), ActorSignal(), ActorSignal()
        #: What jobs have said, by whom, and the scheduler has not heard.
        self.job_messages: list[tuple[str, object]] = []
        #: Of jobs that the scheduler wants to run or stop: what is to be done, in order.
        self._pending_decisions: list[tuple[LiveJob, ExecuteJob | None]] = []
        #: Of jobs that run: who waits for their end. Of jobs that are to run and have no pods yet: likewise.
        self._end_signals: dict[str, ActorSignal] = {}
        self._jobs_with_pods: set[str] = set()
        conversation: Conversation
        self.server = BatsimServer(
            self.scene,
            self._mailbox,
            options,
            self._machines,
            self.workloads,
            _NullRecorder(),
            lambda message: conversation.exchange(message),
            {JOBS: 1},
        )
        self._power: ClusterPower | NoPower = NoPower()
        if book is not None:
            self._power = ClusterPower(self.scene, self._mailbox, self.server, self._machines, book)
        deeds = SchedulerActions(
            self.scene, self._mailbox, options, self._machines, self.workloads, self.server, self, self._power
        )
        deeds.on_registration = self._register
        deeds.on_rejection = lambda live: self._pending_decisions.append((live, None))
        conversation = Conversation(
            self.scene, self._mailbox, scheduler, deeds.handler_for, self.server.on_scheduler_ready
        )
        self.scene.spawn(self._submit_jobs(), _MASTER)
        self.scene.spawn(self._report_events(), _MASTER)
        self.scene.spawn(self._forward_job_messages(), _MASTER)
        sources = {name: document.workload.source for name, document in documents.items()}
        self.scene.spawn(
            self.server.run(describe_simulation(self._machines, sources, options, self.workloads)), _MASTER
        )

    # What the cluster tells

    def on_pods_created(self, jobs: Sequence[Job]) -> None:
        """The pods of jobs are there. After machines have changed all that wait come again."""
        fresh = [job.key for job in jobs if job.key not in self._jobs_with_pods]
        self._jobs_with_pods |= set(fresh)
        static = [self.workloads.job(key) for key in fresh if self.workloads.job(key).state is JobState.NOT_SUBMITTED]
        if static:
            self._arrival_signal.send(self.scene, static)

    def report_machines(self) -> None:
        """Machines take no jobs any more, or do again."""
        # That those are closed which it has switched off itself is no news to a scheduler.
        self._power.on_machines_back(self.present)
        before, now, at = self._reported, self.present | self._power.away, self.scene.now
        self._reported = now
        for kind, mask in ((MACHINE_AVAILABLE, now & ~before), (MACHINE_UNAVAILABLE, before & ~now)):
            if mask:
                self._event_signal.send(self.scene, [Notify(at=at, kind=kind, more={"resources": mask})])

    def report_job_messages(self) -> None:
        """Jobs have said something."""
        speeches, self.job_messages = self.job_messages, []
        for key, message in speeches:
            self._message_signal.send(self.scene, (self.workloads.job(key), message))

    def on_job_ended(self, job: Job, outcome: Outcome | None) -> None:
        """A job is over."""
        bell = self._end_signals.pop(job.key, None)
        if bell is not None and outcome is not None:
            bell.send(self.scene, outcome)

    # What the scheduler wants

    def decisions(self, view: View) -> Iterator[Decision]:
        """Yield what is to be done with jobs, in the order in which the scheduler said so."""
        wanted, self._pending_decisions = self._pending_decisions, []
        for live, execution in wanted:
            if live.state is JobState.REJECTED:
                yield Reject(live.job, "the scheduler rejected it")
            elif live.id not in self._jobs_with_pods:
                self._pending_decisions.append((live, execution))
            elif execution is None:
                yield Evict(live.job)
            else:
                ids = list(members(execution.machines))
                places = ids if execution.mapping is None else [ids[place] for place in execution.mapping]
                yield Start(live.job, view.free.taken_by(live.job, places))
        yield from self._power.decisions()

    def run(self, live: LiveJob, execution: ExecuteJob) -> ActorCode:
        """Have the cluster run a job, and the server told of its end."""
        live.started, live.machines = self.scene.now, execution.machines
        live.progress = JobProgress(live.job.profile.name)
        live.progress.begin_task(lambda now: _progress_of(live, now))
        self._machines.start_job(live.id, live.machines, live.started)
        bell = self._end_signals[live.id] = ActorSignal()
        self._pending_decisions.append((live, execution))
        outcome = yield bell
        assert isinstance(outcome, Outcome)
        self._record_end(live, outcome.state)
        if live.state is not JobState.KILLED:
            yield from self._mailbox.put(functools.partial(self.server.on_job_completed, live))

    def stop(self, live: LiveJob) -> ActorCode:
        """Have the cluster stop a job: its pods are deleted at this instant, so that it has ended.

        One that ended by itself at this instant is about to say so.
        """
        if self._end_signals.pop(live.id, None) is not None:
            if live.actor is not None:
                self.scene.kill(live.actor)
            self._pending_decisions.append((live, None))
            self._record_end(live, FinalState.KILLED)
        yield from ()

    def _record_end(self, live: LiveJob, state: FinalState) -> None:
        live.state = JobState(state.value)
        live.return_code = _RETURN_CODES.get(state, -1)
        if state is FinalState.FAILED:
            live.return_code = live.job.profile.ret or 1
        self._machines.end_job(live.id, live.machines, self.scene.now)
        live.length = Duration(self.scene.now - live.started) or _SHORTEST_LENGTH

    def _register(self, live: LiveJob) -> None:
        self._submit(live.job, self.scene.now)

    # Where jobs and events come from

    def _submit_jobs(self) -> ActorCode:
        yield from self._mailbox.put(announce)
        while self._unsubmitted_count:
            jobs = yield self._arrival_signal
            assert isinstance(jobs, list)
            self._unsubmitted_count -= len(jobs)
            yield from self._mailbox.put(functools.partial(self.server.on_jobs_submitted, jobs))
        yield from self._mailbox.put(functools.partial(self.server.on_source_finished, JOBS, END_NOTIFICATIONS[JOBS]))

    def _report_events(self) -> ActorCode:
        while True:
            events = yield self._event_signal
            assert isinstance(events, list)
            yield from self._mailbox.put(functools.partial(self.server.on_external_events, events))

    def _forward_job_messages(self) -> ActorCode:
        while True:
            speech = yield self._message_signal
            assert isinstance(speech, tuple)
            live, message = speech
            yield from self._mailbox.put(functools.partial(self.server.on_job_message, live, message))


def _available_mask(machines: Sequence[Machine]) -> int:
    """Return the machines that take jobs."""
    return mask_of(machine.id for machine in machines if machine.capacity[PODS] > 0)


def _progress_of(live: LiveJob, now: Instant) -> float:
    """Return how much of a job is done, as far as its length is known beforehand."""
    length = getattr(live.job.profile, "duration", 0)
    return (now - live.started) / length if length else 0.0
