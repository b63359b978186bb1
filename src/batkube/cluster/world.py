"""The world: the live parts that everybody in one run or one served cluster shares.

Kubelets, controllers, policies and the API server know nothing of each other. They meet in the store, book what follows
on the agenda, and draw, record and note in the same streams, journal and notes. So a component takes the world, and
besides it only what is its own.
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
    """What there is, what is due, what time it is, and what is told of it."""

    streams: Streams
    journal: Journal = field(default_factory=Journal)
    store: Store = field(default_factory=Store)
    agenda: Agenda = field(default_factory=Agenda)
    #: Moved by the loop alone; everybody else is handed `now`.
    clock: Clock = field(default_factory=Clock)
    notes: FidelityNotes = field(default_factory=FidelityNotes)
    #: Whether anybody reads the events that components tell of objects; in a run nobody does.
    has_event_readers: bool = True
    #: Whether whoever acts now may be broken off while somebody outside is asked.
    suspension: SuspensionControl = field(default_factory=SuspensionControl)
    #: What the pods of one job do together.
    executions: JobExecutions = field(default_factory=JobExecutions)
    #: Which nodes are alive.
    heartbeats: Heartbeats = field(init=False)
    #: Which machine is behind each node.
    machines: MachineRegistry = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "heartbeats", Heartbeats(self.store))
        object.__setattr__(self, "machines", MachineRegistry(self.store))
