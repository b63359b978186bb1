"""A policy that obtains its decisions from a scheduler of Batsim's protocol.

Batsim's actors exchange messages with the scheduler, as in `batkube batsim`. But jobs are submitted when their pods are
created, and the cluster executes them: the requests of the scheduler become decisions of a policy, so that there is one
way to bind pods, and the ends of jobs are known from their outcomes. Time is that of the run: the dates of the actors
become wake-ups of the policy.

A killed job has ended, and so has a job whose node fails: Batsim has no retries.
"""

from __future__ import annotations

import functools
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from batkube.batsim.protocol.messages import ExecuteJob, Notify
from batkube.batsim.schedulers.cluster_power import ClusterPower, NoPower
from batkube.batsim.server.actions import SchedulerActions
from batkube.batsim.server.batsim_server import JOBS, MACHINE_AVAILABLE, MACHINE_UNAVAILABLE, BatsimServer
from batkube.batsim.server.conversation import Conversation, SchedulerConnection
from batkube.batsim.server.simulation_description import describe_simulation
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
from batkube.execution.energy.log import EnergyLog
from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.instants import Duration, Instant
from batkube.kernel.intervals import mask_of, members
from batkube.kernel.quantities import PODS
from batkube.platforms.model import Machine
from batkube.policies.interface import Evict, Policy, Reject, Start, View, WakeAt
from batkube.workloads.formats.batsim.documents import BatsimDocument
from batkube.workloads.model import Job, Profile

SubmitJob = Callable[[Job, Instant], None]
"""Submits a job that is not in a workload."""

_MASTER = "master_host"
#: The length of a job that took no time (Batsim: execute_job_process, 1e-5 s).
_SHORTEST_LENGTH = Duration(10_000)
_RETURN_CODES = {FinalState.SUCCESS: 0, FinalState.FAILED: 1, FinalState.WALLTIME: -1, FinalState.KILLED: -1}


class BatsimScheduler(Policy):
    """A policy that obtains its decisions from a scheduler of Batsim's protocol."""

    watches_machines = True

    def __init__(self, spec: str, options: Options) -> None:
        """`spec` is the endpoint of the scheduler, or the command that starts it."""
        self.spec = spec
        self._options = options
        #: Set by `connect`.
        self._scheduler: SchedulerConnection | None = None
        self._documents: Mapping[str, BatsimDocument] = {}
        self._submit: SubmitJob = lambda job, now: None
        self._energy_log: EnergyLog | None = None
        self._batsim: _ClusterBatsim | None = None
        self._outcomes: dict[str, Outcome] = {}
        #: Requests a decision at an instant, for messages of jobs.
        self.wake_at: Callable[[Instant], None] = lambda at: None

    def connect(
        self,
        scheduler: SchedulerConnection,
        documents: Mapping[str, BatsimDocument],
        submit: SubmitJob,
        energy_log: EnergyLog | None,
    ) -> None:
        """Connect the policy to its scheduler and to a run. `submit` submits the jobs that the scheduler registers."""
        self._scheduler, self._documents, self._submit, self._energy_log = scheduler, documents, submit, energy_log

    def check(self, model: ResourceModel) -> None:
        """Reject shared machines in runs whose jobs get whole machines. Raise InputError."""
        if self._options.allows_compute_sharing and model is ResourceModel.MACHINES:
            raise InputError(
                "--scheduler-arg enable-compute-sharing",
                problem="jobs of this run get whole machines, which cannot be shared",
                remedy="add --resources requests, or omit the argument",
            )

    # Messages of jobs

    def send(self, job: Job, message: object, now: Instant) -> None:
        """Send a message of a job to the scheduler, at this instant."""
        assert self._batsim is not None, "only started jobs send messages"
        self._batsim.job_messages.append((job.key, message))
        self.wake_at(now)

    def inbox(self, job: Job) -> deque[str]:
        """Return the scheduler's unread messages to a job."""
        assert self._batsim is not None, "only started jobs receive messages"
        return self._batsim.registry.job(job.key).inbox

    def profile(self, job: Job, name: str) -> Profile:
        """Return the profile that a job continues with. Raise RunFailed if it does not exist."""
        assert self._batsim is not None, "only started jobs receive messages"
        profile = self._batsim.registry.profile(job.workload, name)
        if profile is None:
            raise RunFailed(f"job {job.key} continues with the profile {name!r}, which no job of its workload uses")
        return profile

    def on_job_ended(self, outcome: Outcome) -> None:
        """Record the outcome of a job, for the next decision."""
        self._outcomes[outcome.job.key] = outcome

    @property
    def expects_jobs(self) -> bool:
        """Whether the scheduler may still register jobs."""
        return self._options.has_dynamic_jobs and (self._batsim is None or not self._batsim.server.is_registration_over)

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Create the simulated Batsim; on later calls, update the machines that take jobs."""
        super().begin(machines, rng)
        if self._batsim is None:
            assert self._scheduler is not None, "connect() precedes begin()"
            self._batsim = _ClusterBatsim(
                machines, self._documents, self._options, self._scheduler, self._submit, self._energy_log
            )
        else:
            self._batsim.present = _available_mask(machines)

    def decide(self, view: View) -> Iterator[Decision]:
        """Report the events of the cluster to the scheduler, and yield its decisions."""
        batsim = self._batsim
        assert batsim is not None, "begin() precedes decide()"
        while (due := batsim.kernel.due) is not None and due < view.now:
            batsim.kernel.step(due)
        batsim.kernel.advance_to(view.now)
        batsim.on_pods_created(view.arrived)
        batsim.report_machines()
        batsim.report_job_messages()
        for job in view.ended:
            outcome = self._outcomes.pop(job.key, None)
            batsim.on_job_ended(job, outcome)
        yield from batsim.decisions(view)
        while (due := batsim.kernel.due) is not None and due <= view.now:
            batsim.kernel.step(due)
            yield from batsim.decisions(view)
        if due is not None:
            yield WakeAt(due)

    def close(self) -> None:
        """Send the pending calls and SIMULATION_ENDS to the scheduler."""
        batsim = self._batsim
        while batsim is not None and not batsim.server.is_over and (due := batsim.kernel.due) is not None:
            batsim.kernel.step(due)


class _NullRecorder:
    """Records nothing: the run writes the outcomes of jobs."""

    def record(self, live: LiveJob) -> None:
        """Do nothing."""


class _ClusterBatsim:
    """The actors of a Batsim whose jobs a cluster executes."""

    def __init__(
        self,
        machines: Sequence[Machine],
        documents: Mapping[str, BatsimDocument],
        options: Options,
        scheduler: SchedulerConnection,
        submit: SubmitJob,
        energy_log: EnergyLog | None,
    ) -> None:
        self.kernel = ActorKernel()
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
        #: The machines that take jobs, as last reported to the scheduler, and now.
        self._reported = self.present = _available_mask(machines)
        self.registry = JobRegistry(documents, keeps_profiles=options.keeps_profiles)
        self._unsubmitted_count = sum(len(document.workload.jobs) for document in documents.values())
        self._arrival_signal, self._event_signal, self._message_signal = ActorSignal(), ActorSignal(), ActorSignal()
        #: Messages of jobs that have not been sent to the scheduler yet, with the ids of the jobs.
        self.job_messages: list[tuple[str, object]] = []
        #: Jobs that the scheduler executes (with the request), kills or rejects (with None), in order.
        self._pending_decisions: list[tuple[LiveJob, ExecuteJob | None]] = []
        #: The signals for the ends of jobs, by job id, from the request to execute them.
        self._end_signals: dict[str, ActorSignal] = {}
        self._jobs_with_pods: set[str] = set()
        conversation: Conversation
        self.server = BatsimServer(
            self.kernel,
            self._mailbox,
            options,
            self._machines,
            self.registry,
            _NullRecorder(),
            lambda message: conversation.exchange(message),
            {JOBS: 1},
        )
        self._power: ClusterPower | NoPower = NoPower()
        if energy_log is not None:
            self._power = ClusterPower(self.kernel, self._mailbox, self.server, self._machines, energy_log)
        actions = SchedulerActions(
            self.kernel, self._mailbox, options, self._machines, self.registry, self.server, self, self._power
        )
        actions.on_registration = self._register
        actions.on_rejection = lambda live: self._pending_decisions.append((live, None))
        conversation = Conversation(
            self.kernel, self._mailbox, scheduler, actions.handler_for, self.server.on_scheduler_ready
        )
        self.kernel.spawn(self._submit_jobs(), _MASTER)
        self.kernel.spawn(self._report_events(), _MASTER)
        self.kernel.spawn(self._forward_job_messages(), _MASTER)
        sources = {name: document.workload.source for name, document in documents.items()}
        self.kernel.spawn(
            self.server.run(describe_simulation(self._machines, sources, options, self.registry)), _MASTER
        )

    # Events of the cluster

    def on_pods_created(self, jobs: Sequence[Job]) -> None:
        """Submit the jobs whose pods were created. Ignore known jobs: after a change of machines, all arrive again."""
        created = [job.key for job in jobs if job.key not in self._jobs_with_pods]
        self._jobs_with_pods |= set(created)
        submitted = [live for live in map(self.registry.job, created) if live.state is JobState.NOT_SUBMITTED]
        if submitted:
            self._arrival_signal.send(self.kernel, submitted)

    def report_machines(self) -> None:
        """Report the machines that have become available or unavailable, except those that the scheduler switches."""
        self._power.on_machines_changed(self.present)
        before, now, at = self._reported, self.present | self._power.switched_off, self.kernel.now
        self._reported = now
        for kind, mask in ((MACHINE_AVAILABLE, now & ~before), (MACHINE_UNAVAILABLE, before & ~now)):
            if mask:
                self._event_signal.send(self.kernel, [Notify(at=at, kind=kind, more={"resources": mask})])

    def report_job_messages(self) -> None:
        """Report the messages of jobs."""
        messages, self.job_messages = self.job_messages, []
        for key, message in messages:
            self._message_signal.send(self.kernel, (self.registry.job(key), message))

    def on_job_ended(self, job: Job, outcome: Outcome | None) -> None:
        """Report the outcome of a job, unless its end was reported before."""
        signal = self._end_signals.pop(job.key, None)
        if signal is not None and outcome is not None:
            signal.send(self.kernel, outcome)

    # Requests of the scheduler

    def decisions(self, view: View) -> Iterator[Decision]:
        """Yield the requests of the scheduler as decisions, in order; those for jobs without pods have to wait."""
        pending, self._pending_decisions = self._pending_decisions, []
        for live, execution in pending:
            if live.state is JobState.REJECTED:
                yield Reject(live.job, "the scheduler rejected it")
            elif live.id not in self._jobs_with_pods:
                self._pending_decisions.append((live, execution))
            elif execution is None:
                yield Evict(live.job)
            else:
                ids = list(members(execution.machines))
                machines = ids if execution.mapping is None else [ids[position] for position in execution.mapping]
                yield Start(live.job, view.free.taken_by(live.job, machines))
        yield from self._power.decisions()

    def run(self, live: LiveJob, execution: ExecuteJob) -> ActorCode:
        """Execute a job on the cluster, and notify the server of its end."""
        live.started, live.machines = self.kernel.now, execution.machines
        live.progress = JobProgress(live.job.profile.name)
        live.progress.begin_task(lambda now: _progress_of(live, now))
        self._machines.start_job(live.id, live.machines, live.started)
        signal = self._end_signals[live.id] = ActorSignal()
        self._pending_decisions.append((live, execution))
        outcome = yield signal
        assert isinstance(outcome, Outcome)
        self._record_end(live, outcome.state)
        if live.state is not JobState.KILLED:
            yield from self._mailbox.put(functools.partial(self.server.on_job_completed, live))

    def stop(self, live: LiveJob) -> ActorCode:
        """Stop a job on the cluster: its pods are deleted at this instant, so it has ended.

        Ignore a job that has ended by itself at this instant; its end is about to be reported.
        """
        if self._end_signals.pop(live.id, None) is not None:
            if live.actor is not None:
                self.kernel.kill(live.actor)
            self._pending_decisions.append((live, None))
            self._record_end(live, FinalState.KILLED)
        yield from ()

    def _record_end(self, live: LiveJob, state: FinalState) -> None:
        live.state = JobState(state.value)
        live.return_code = _RETURN_CODES.get(state, -1)
        if state is FinalState.FAILED:
            live.return_code = live.job.profile.ret or 1
        self._machines.end_job(live.id, live.machines, self.kernel.now)
        live.length = Duration(self.kernel.now - live.started) or _SHORTEST_LENGTH

    def _register(self, live: LiveJob) -> None:
        self._submit(live.job, self.kernel.now)

    # Actors that forward the events of the cluster

    def _submit_jobs(self) -> ActorCode:
        yield from self._mailbox.put(self.server.on_submitter_hello)
        while self._unsubmitted_count:
            jobs = yield self._arrival_signal
            assert isinstance(jobs, list)
            self._unsubmitted_count -= len(jobs)
            yield from self._mailbox.put(functools.partial(self.server.on_jobs_submitted, jobs))
        yield from self._mailbox.put(functools.partial(self.server.on_submitter_bye, JOBS))

    def _report_events(self) -> ActorCode:
        while True:
            events = yield self._event_signal
            assert isinstance(events, list)
            yield from self._mailbox.put(functools.partial(self.server.on_external_events, events))

    def _forward_job_messages(self) -> ActorCode:
        while True:
            job_message = yield self._message_signal
            assert isinstance(job_message, tuple)
            live, message = job_message
            yield from self._mailbox.put(functools.partial(self.server.on_job_message, live, message))


def _available_mask(machines: Sequence[Machine]) -> int:
    """Return the machines that take jobs, as a set of ids."""
    return mask_of(machine.id for machine in machines if machine.capacity[PODS] > 0)


def _progress_of(live: LiveJob, now: Instant) -> float:
    """Return the fraction of a job that is done, or 0 if its length is not known in advance."""
    length = getattr(live.job.profile, "duration", 0)
    return (now - live.started) / length if length else 0.0
