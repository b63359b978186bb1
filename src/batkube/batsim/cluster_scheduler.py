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

from batkube.batsim.actors import Scene, Script
from batkube.batsim.bells import Bell
from batkube.batsim.cluster_power import ClusterPower, NoPower
from batkube.batsim.conversation import Conversation, Scheduler
from batkube.batsim.deeds import Deeds
from batkube.batsim.greeting import beginning
from batkube.batsim.jobs import JobState, LiveJob, Workloads
from batkube.batsim.machines import LiveMachine, Machines
from batkube.batsim.mailboxes import Mailbox
from batkube.batsim.messages import ExecuteJob, Notify
from batkube.batsim.options import Options
from batkube.batsim.progress import JobProgress
from batkube.batsim.server import MACHINE_AVAILABLE, MACHINE_UNAVAILABLE, BatsimServer
from batkube.batsim.sources import JOBS, NOTICES, hello
from batkube.cluster.decisions import Decision
from batkube.cluster.mapping import ResourceModel
from batkube.cluster.outcomes import FinalState, Outcome
from batkube.execution.energy_book import EnergyBook
from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.instants import Duration, Instant
from batkube.kernel.intervals import mask_of, members
from batkube.kernel.quantities import PODS
from batkube.platforms.model import Machine
from batkube.policies.interface import Evict, Policy, Reject, Start, View, WakeAt
from batkube.workloads.batsim import BatsimDocument
from batkube.workloads.model import Job, Profile

Submit = Callable[[Job, Instant], None]
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
        self._scheduler: Scheduler | None = None
        self._documents: Mapping[str, BatsimDocument] = {}
        self._submit: Submit = lambda job, now: None
        self._book: EnergyBook | None = None
        self._cast: _Cast | None = None
        self._outcomes: dict[str, Outcome] = {}
        #: Has it asked at an instant, when a job has said something.
        self.wake_at: Callable[[Instant], None] = lambda at: None

    def connect(
        self, scheduler: Scheduler, documents: Mapping[str, BatsimDocument], submit: Submit, book: EnergyBook | None
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

    def speak(self, job: Job, message: object, now: Instant) -> None:
        """Take what a job says to the scheduler, which hears it at this instant."""
        assert self._cast is not None, "jobs that speak have been started"
        self._cast.speeches.append((job.key, message))
        self.wake_at(now)

    def inbox(self, job: Job) -> deque[str]:
        """Return what the scheduler has said to a job."""
        assert self._cast is not None, "jobs that listen have been started"
        return self._cast.workloads.job(job.key).inbox

    def profile(self, job: Job, name: str) -> Profile:
        """Return the profile that a job goes on with."""
        assert self._cast is not None, "jobs that listen have been started"
        chosen = self._cast.workloads.profile(job.workload, name)
        if chosen is None:
            raise RunFailed(f"job {job.key} goes on with the profile {name!r}, which no job of its workload uses")
        return chosen

    def hear(self, outcome: Outcome) -> None:
        """Take note of how a job ended."""
        self._outcomes[outcome.job.key] = outcome

    @property
    def expects_jobs(self) -> bool:
        """Whether the scheduler may still register jobs."""
        return self._options.has_dynamic_jobs and (self._cast is None or not self._cast.server.is_registration_over)

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Meet the machines, or hear that some have gone or come back."""
        super().begin(machines, rng)
        if self._cast is None:
            assert self._scheduler is not None, "a run connects its scheduler first"
            self._cast = _Cast(machines, self._documents, self._options, self._scheduler, self._submit, self._book)
        else:
            self._cast.present = _present(machines)

    def decide(self, view: View) -> Iterator[Decision]:
        """Tell the scheduler what happened, and yield what it decides."""
        cast = self._cast
        assert cast is not None, "machines come before decisions"
        while (due := cast.scene.due) is not None and due < view.now:
            cast.scene.step(due)
        cast.scene.reach(view.now)
        cast.arrive(view.arrived)
        cast.tell_of_machines()
        cast.tell_of_speeches()
        for job in view.ended:
            outcome = self._outcomes.pop(job.key, None)
            cast.end(job, outcome)
        yield from cast.decisions(view)
        while (due := cast.scene.due) is not None and due <= view.now:
            cast.scene.step(due)
            yield from cast.decisions(view)
        if due is not None:
            yield WakeAt(due)

    def close(self) -> None:
        """Let the scheduler know that the simulation is over, after the calls it is still waiting for."""
        cast = self._cast
        while cast is not None and not cast.server.is_over and (due := cast.scene.due) is not None:
            cast.scene.step(due)


class _Nobody:
    """Writes nothing down: the run's own files tell of jobs."""

    def record(self, live: LiveJob) -> None:
        """A job is over."""


class _Cast:
    """The actors of a Batsim whose jobs a cluster carries out."""

    def __init__(
        self,
        machines: Sequence[Machine],
        documents: Mapping[str, BatsimDocument],
        options: Options,
        scheduler: Scheduler,
        submit: Submit,
        book: EnergyBook | None,
    ) -> None:
        self.scene = Scene()
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
        self._known = self.present = _present(machines)
        self.workloads = Workloads(documents, keeps_profiles=options.keeps_profiles)
        self._open = sum(len(document.workload.jobs) for document in documents.values())
        self._arrivals, self._happenings, self._words = Bell(), Bell(), Bell()
        #: What jobs have said, by whom, and the scheduler has not heard.
        self.speeches: list[tuple[str, object]] = []
        #: Of jobs that the scheduler wants to run or stop: what is to be done, in order.
        self._wanted: list[tuple[LiveJob, ExecuteJob | None]] = []
        #: Of jobs that run: who waits for their end. Of jobs that are to run and have no pods yet: likewise.
        self._ends: dict[str, Bell] = {}
        self._pods: set[str] = set()
        conversation: Conversation
        self.server = BatsimServer(
            self.scene,
            self._mailbox,
            options,
            self._machines,
            self.workloads,
            _Nobody(),
            lambda message: conversation.exchange(message),
            {JOBS: 1},
        )
        self._power: ClusterPower | NoPower = NoPower()
        if book is not None:
            self._power = ClusterPower(self.scene, self._mailbox, self.server, self._machines, book)
        deeds = Deeds(
            self.scene, self._mailbox, options, self._machines, self.workloads, self.server, self, self._power
        )
        deeds.on_registration = self._register
        deeds.on_rejection = lambda live: self._wanted.append((live, None))
        conversation = Conversation(self.scene, self._mailbox, scheduler, deeds.deed, self.server.ready)
        self.scene.enter(self._source(), _MASTER)
        self.scene.enter(self._herald(), _MASTER)
        self.scene.enter(self._mouthpiece(), _MASTER)
        sources = {name: document.workload.source for name, document in documents.items()}
        self.scene.enter(self.server.script(beginning(self._machines, sources, options, self.workloads)), _MASTER)

    # What the cluster tells

    def arrive(self, jobs: Sequence[Job]) -> None:
        """The pods of jobs are there. After machines have changed all that wait come again."""
        fresh = [job.key for job in jobs if job.key not in self._pods]
        self._pods |= set(fresh)
        static = [self.workloads.job(key) for key in fresh if self.workloads.job(key).state is JobState.NOT_SUBMITTED]
        if static:
            self._arrivals.ring(self.scene, static)

    def tell_of_machines(self) -> None:
        """Machines take no jobs any more, or do again."""
        # That those are closed which it has switched off itself is no news to a scheduler.
        self._power.come_back(self.present)
        before, now, at = self._known, self.present | self._power.away, self.scene.now
        self._known = now
        for kind, mask in ((MACHINE_AVAILABLE, now & ~before), (MACHINE_UNAVAILABLE, before & ~now)):
            if mask:
                self._happenings.ring(self.scene, [Notify(at=at, kind=kind, more={"resources": mask})])

    def tell_of_speeches(self) -> None:
        """Jobs have said something."""
        speeches, self.speeches = self.speeches, []
        for key, message in speeches:
            self._words.ring(self.scene, (self.workloads.job(key), message))

    def end(self, job: Job, outcome: Outcome | None) -> None:
        """A job is over."""
        bell = self._ends.pop(job.key, None)
        if bell is not None and outcome is not None:
            bell.ring(self.scene, outcome)

    # What the scheduler wants

    def decisions(self, view: View) -> Iterator[Decision]:
        """Yield what is to be done with jobs, in the order in which the scheduler said so."""
        wanted, self._wanted = self._wanted, []
        for live, execution in wanted:
            if live.state is JobState.REJECTED:
                yield Reject(live.job, "the scheduler rejected it")
            elif live.id not in self._pods:
                self._wanted.append((live, execution))
            elif execution is None:
                yield Evict(live.job)
            else:
                ids = list(members(execution.machines))
                places = ids if execution.mapping is None else [ids[place] for place in execution.mapping]
                yield Start(live.job, view.free.taken_by(live.job, places))
        yield from self._power.decisions()

    def run(self, live: LiveJob, execution: ExecuteJob) -> Script:
        """Have the cluster run a job, and the server told of its end."""
        live.began, live.machines = self.scene.now, execution.machines
        live.progress = JobProgress(live.job.profile.name)
        live.progress.begin_task(lambda now: _share(live, now))
        self._machines.begin(live.id, live.machines, live.began)
        bell = self._ends[live.id] = Bell()
        self._wanted.append((live, execution))
        outcome = yield bell
        assert isinstance(outcome, Outcome)
        self._finish(live, outcome.state)
        if live.state is not JobState.KILLED:
            yield from self._mailbox.put(functools.partial(self.server.completed, live))

    def stop(self, live: LiveJob) -> Script:
        """Have the cluster stop a job: its pods are deleted at this instant, so that it has ended.

        One that ended by itself at this instant is about to say so.
        """
        if self._ends.pop(live.id, None) is not None:
            if live.actor is not None:
                self.scene.end(live.actor)
            self._wanted.append((live, None))
            self._finish(live, FinalState.KILLED)
        yield from ()

    def _finish(self, live: LiveJob, state: FinalState) -> None:
        live.state = JobState(state.value)
        live.return_code = _RETURN_CODES.get(state, -1)
        if state is FinalState.FAILED:
            live.return_code = live.job.profile.ret or 1
        self._machines.end(live.id, live.machines, self.scene.now)
        live.length = Duration(self.scene.now - live.began) or _SHORTEST_LENGTH

    def _register(self, live: LiveJob) -> None:
        self._submit(live.job, self.scene.now)

    # Where jobs and events come from

    def _source(self) -> Script:
        yield from self._mailbox.put(hello)
        while self._open:
            jobs = yield self._arrivals
            assert isinstance(jobs, list)
            self._open -= len(jobs)
            yield from self._mailbox.put(functools.partial(self.server.submitted, jobs))
        yield from self._mailbox.put(functools.partial(self.server.goodbye, JOBS, NOTICES[JOBS]))

    def _herald(self) -> Script:
        while True:
            events = yield self._happenings
            assert isinstance(events, list)
            yield from self._mailbox.put(functools.partial(self.server.happened, events))

    def _mouthpiece(self) -> Script:
        while True:
            speech = yield self._words
            assert isinstance(speech, tuple)
            live, message = speech
            yield from self._mailbox.put(functools.partial(self.server.spoken, live, message))


def _present(machines: Sequence[Machine]) -> int:
    """Return the machines that take jobs."""
    return mask_of(machine.id for machine in machines if machine.capacity[PODS] > 0)


def _share(live: LiveJob, now: Instant) -> float:
    """Return how much of a job is done, as far as its length is known beforehand."""
    length = getattr(live.job.profile, "duration", 0)
    return (now - live.began) / length if length else 0.0
