"""Between us and a policy that somebody else wrote.

Whatever it raises, returns or yields that it should not becomes a RunFailed that names the policy and the line, so that
its author sees what to mend and what was computed is kept.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Iterator, Sequence
from types import GeneratorType
from typing import NoReturn

from batkube.cluster.decisions import Decision
from batkube.kernel.errors import BatkubeError, RunFailed
from batkube.platforms.model import Machine
from batkube.policies.interface import Evict, Policy, Reject, Start, SwitchOff, SwitchOn, View, WakeAt

#: What a policy may raise and we must catch: whatever it is, it ends the run. Ctrl-C is not the policy's doing.
_ANY_ERROR = (Exception, SystemExit)


def line_in_policy(policy: Policy, error: BaseException) -> str | None:
    """Return the line of the policy's own file that `error` passed through last; None if it never was there."""
    own_file = policy.decide.__code__.co_filename
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own_file]
    return _format_line(frames[-1]) if frames else None


def _format_line(frame: traceback.FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno} ({frame.line})"


class GuardedPolicy:
    """Calls a policy and checks what it answers."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._machine_count = 0

    @property
    def name(self) -> str:
        """The policy's own name."""
        return type(self._policy).__name__

    @property
    def watches_machines(self) -> bool:
        """Whether it is to be asked when machines change though no job waits."""
        return self._policy.watches_machines

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Let the policy prepare itself for `machines`."""
        self._machine_count = len(machines)
        try:
            self._policy.begin(machines, rng)
        except _ANY_ERROR as error:
            self._raise_failure(error)

    def decisions(self, view: View) -> Iterator[Decision]:
        """Yield the policy's decisions, each of which must be carried out before the next is asked for."""
        try:
            answer: object = self._policy.decide(view)
        except _ANY_ERROR as error:
            self._raise_failure(error)
        # Nearly always a generator, which is told at once; the abstract class has to be asked at length.
        if not isinstance(answer, (GeneratorType, Iterator)):
            kind = type(answer).__name__
            raise self.error(f"decide returned a {kind}; it must `yield Start(…)` for each decision instead")
        while True:
            try:
                decision: object = next(answer, None)
            except _ANY_ERROR as error:
                self._raise_failure(error)
            if decision is None:
                return
            yield self._check(decision, view)

    def error(self, what: str) -> RunFailed:
        """Return the error that says `what` the policy did."""
        return RunFailed(f"policy {self.name}: {what}")

    def _raise_failure(self, error: BaseException) -> NoReturn:
        """End the run with the line of the policy that `error` came from; our own errors pass as they are."""
        if isinstance(error, BatkubeError):
            raise error
        place = line_in_policy(self._policy, error) or _format_line(traceback.extract_tb(error.__traceback__)[-1])
        raise self.error(f"failed in {place}: {type(error).__name__}: {error}") from error

    def _check(self, decision: object, view: View) -> Decision:
        """Return `decision` unless it has no meaning; whether it is a good one is the policy's business."""
        match decision:
            case Start() | Evict() | Reject():
                pass
            case SwitchOff() | SwitchOn():
                strange = [number for number in decision.machine_ids if not 0 <= number < self._machine_count]
                if strange:
                    raise self.error(f"switched machines {strange}, which do not exist")
            case WakeAt():
                if not isinstance(decision.at, int) or decision.at <= view.now:
                    raise self.error(
                        f"asked to be woken at {decision.at!r}; it must be a whole number of nanoseconds after "
                        f"the present, {view.now}: write view.now + seconds(60)"
                    )
            case _:
                kind = type(decision).__name__
                raise self.error(
                    f"yielded a {kind}, which is not a Start, Evict, Reject, WakeAt, SwitchOff or SwitchOn"
                )
        return decision

    def machine_ids(self, start: Start) -> Sequence[int]:
        """Return where the pods of a job that is to start go, one machine id per pod; refuse what is no placement."""
        job, placement = start.job, start.placement
        if placement is None:
            raise self.error(f"started job {job.key} without a placement: it does not fit now")
        machine_ids: Sequence[int] | None = getattr(placement, "machine_ids", None)
        if machine_ids is None:
            kind = type(placement).__name__
            raise self.error(f"started job {job.key} at a {kind}, which is not a placement; use view.free.fit(job)")
        if len(machine_ids) != job.size:
            raise self.error(f"gave job {job.key} {len(machine_ids)} places for {job.size} pods")
        if min(machine_ids) < 0 or max(machine_ids) >= self._machine_count:
            raise self.error(f"started job {job.key} on machines {machine_ids}, not all of which exist")
        return machine_ids
