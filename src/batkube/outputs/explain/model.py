"""The parts of an explanation, as `batkube explain --json` prints them. Times are in nanoseconds of virtual time."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from batkube.kernel.instants import Duration, Instant


class Cause(enum.StrEnum):
    """Why a job or pod waited during a period."""

    #: Its unplaced pods did not fit: other jobs and pods held the resources.
    RESOURCES = "resources"
    #: Another waiting job came first in the order of a policy in which nothing overtakes the first job.
    ORDER = "order"
    #: It would have fitted, but the free resources were reserved for other jobs.
    RESERVATION = "reservation"
    #: It would have fitted, according to the outputs, but the scheduler did not place it.
    SCHEDULER = "scheduler"


class Holder(msgspec.Struct, frozen=True):
    """A job, or a pod without a job, that held resources on nodes that the waiting one could use."""

    name: str
    #: The number of its pods (or machines) on these nodes.
    pods: int
    since: Instant
    #: None if it held them at the end of the run.
    until: Instant | None
    nodes: tuple[str, ...]


class WaitPeriod(msgspec.Struct, frozen=True):
    """A part of a wait that has a single cause."""

    begin: Instant
    end: Instant | None
    cause: Cause
    #: How many pods were still to be placed, how many fitted at most, and how many would fit if nothing else ran.
    needed: int
    fitting: int
    capacity: int
    #: Those that held resources at the end of the period, the largest first.
    holders: tuple[Holder, ...] = ()
    #: How many others held resources earlier in the period.
    earlier_holders: int = 0
    #: With `order`, and with `reservation` under EASY: the job that came first at the end of the period, how many
    #: did during the period, and the order.
    first: str = ""
    first_count: int = 0
    order: str = ""


class Overtaker(msgspec.Struct, frozen=True):
    """A job that was queued later and placed earlier."""

    name: str
    queued: Instant
    placed: Instant
    pods: int
    #: Why it was allowed to.
    rule: str


class PlannedStart(msgspec.Struct, frozen=True):
    """A start that the policy planned for a waiting job."""

    at: Instant
    start: Instant
    machines: str
    #: The jobs that held these machines until then.
    after: tuple[str, ...]


class FailedAttempts(msgspec.Struct, frozen=True):
    """Attempts of a real scheduler that failed for one reason."""

    first: Instant
    last: Instant
    count: int
    reason: str
    #: The plugins that rejected nodes; only with `--explain`.
    plugins: tuple[str, ...] = ()


class NodeScore(msgspec.Struct, frozen=True):
    """The score of a node, by plugin, as the scheduler logged it."""

    node: str
    score: int
    plugins: Mapping[str, int]


class NodeChoice(msgspec.Struct, frozen=True):
    """How a real scheduler chose the node of a pod."""

    at: Instant
    pod: str
    node: str
    evaluated: int
    feasible: int
    #: How many nodes had the highest score.
    tied: int
    best: tuple[NodeScore, ...]


class JournalFact(msgspec.Struct, frozen=True):
    """Any other event in journal.jsonl or reasons.jsonl that concerns the subject."""

    at: Instant
    text: str


class ExecutionExplanation(msgspec.Struct, frozen=True):
    """One execution of a job, or the life of a pod: its wait and what followed."""

    queued: Instant
    #: When its first and last pods got their nodes.
    first_bound: Instant | None
    bound: Instant | None
    started: Instant | None
    ended: Instant | None
    waited: Duration
    pods: int
    nodes: tuple[str, ...]
    periods: tuple[WaitPeriod, ...]
    #: Those that ended at the instant at which it could be placed.
    released_by: tuple[str, ...]
    overtaken_by: tuple[Overtaker, ...]
    #: The reason that the policy recorded for starting it; "" if none.
    start_reason: str
    reservations: tuple[PlannedStart, ...]
    attempts: tuple[FailedAttempts, ...]
    choices: tuple[NodeChoice, ...]
    facts: tuple[JournalFact, ...]


class JobExplanation(msgspec.Struct, frozen=True, tag="job", tag_field="kind"):
    """The explanation of a job."""

    name: str
    scheduler: str
    #: What is counted: `machines`, or `pods` if they share nodes.
    counted: str
    size: int | None
    walltime: Duration | None
    user: str
    priority: int
    final_state: str
    #: Whether the run recorded reasons (`--explain`). If not, causes are derived from the journal.
    has_reasons: bool
    executions: tuple[ExecutionExplanation, ...]


class PodExplanation(msgspec.Struct, frozen=True, tag="pod", tag_field="kind"):
    """The explanation of a pod."""

    name: str
    job: str
    owner: str
    scheduler: str
    counted: str
    requests: Mapping[str, int]
    phase: str
    has_reasons: bool
    #: One for each pod that had this name.
    executions: tuple[ExecutionExplanation, ...]


class Stay(msgspec.Struct, frozen=True):
    """A job, or a pod without a job, on a node."""

    name: str
    pods: int
    since: Instant
    until: Instant | None


class StatusPeriod(msgspec.Struct, frozen=True):
    """A period in which a node was not ready."""

    status: str
    begin: Instant
    end: Instant | None


class Use(msgspec.Struct, frozen=True):
    """How much of a node's resource was used while the node existed."""

    resource: str
    capacity: int
    mean: float
    peak: int


class NodeExplanation(msgspec.Struct, frozen=True, tag="node", tag_field="kind"):
    """The explanation of a node."""

    name: str
    machine: int
    capacity: Mapping[str, int]
    zone: str
    rack: str
    pool: str
    existed: tuple[tuple[Instant, Instant | None], ...]
    uses: tuple[Use, ...]
    #: How long no pod was on it, and it existed.
    idle: Duration
    statuses: tuple[StatusPeriod, ...]
    stays: tuple[Stay, ...]


Explanation = JobExplanation | PodExplanation | NodeExplanation
