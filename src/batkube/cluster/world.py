"""The world: the parts of a simulated cluster that all its components share, as one value.

Kubelets, controllers, policies and the API server do not call each other. They communicate through the store, schedule
future actions on the agenda, and share random streams, journal and fidelity notes. So the constructor of a component
takes the world, and otherwise only its own collaborators.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from batkube.cluster.jobs.executions import JobExecutions
from batkube.cluster.nodes.heartbeats import Heartbeats
from batkube.cluster.nodes.machine_registry import MachineRegistry
from batkube.cluster.store import Store
from batkube.cluster.suspension import SuspensionControl
from batkube.kernel.agenda import Agenda
from batkube.kernel.clock import Clock
from batkube.kernel.fidelity import FidelityNotes
from batkube.kernel.journal import Journal
from batkube.kernel.streams import Streams


@dataclass(frozen=True, slots=True)
class World:
    """The shared state of one run or one served cluster."""

    streams: Streams
    journal: Journal = field(default_factory=Journal)
    store: Store = field(default_factory=Store)
    agenda: Agenda = field(default_factory=Agenda)
    #: Advanced by the loop only. Components get the time as the argument `now`.
    clock: Clock = field(default_factory=Clock)
    notes: FidelityNotes = field(default_factory=FidelityNotes)
    #: Whether any client can read Event objects. If not, components record none.
    has_event_readers: bool = True
    #: Whether the current action may be suspended while a webhook is called.
    suspension: SuspensionControl = field(default_factory=SuspensionControl)
    #: Why schedulers decided as they did, for `batkube explain`; it records nothing without `--explain`.
    reasons: Journal = field(default_factory=Journal)
    #: The job executions, by pod.
    executions: JobExecutions = field(default_factory=JobExecutions)
    #: Which nodes send heartbeats.
    heartbeats: Heartbeats = field(init=False)
    #: The machine of each node.
    machines: MachineRegistry = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heartbeats", Heartbeats(self.store))
        object.__setattr__(self, "machines", MachineRegistry(self.store))
