"""Protects the run from a policy of the user.

Anything invalid that it raises, returns or yields becomes a RunFailed that names the policy and the
line, so that its author can correct it and the results computed so far are kept.
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
from batkube.policies.interface import Evict, Policy, Reject, Start, SwitchOff, SwitchOn, View, Wait, WakeAt

#: Exceptions of a policy that end the run. KeyboardInterrupt comes from the user and is not caught.
_ANY_ERROR = (Exception, SystemExit)


def line_in_policy(policy: Policy, error: BaseException) -> str | None:
    """Return the last line of the policy's file in the traceback of `error`, or None."""
    own_file = policy.decide.__code__.co_filename
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == own_file]
    return _format_line(frames[-1]) if frames else None


def _format_line(frame: traceback.FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno} ({frame.line})"


class GuardedPolicy:
    """Calls a policy and checks its decisions."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._machine_count = 0

    @property
    def name(self) -> str:
        """The name of the policy's class."""
        return type(self._policy).__name__

    @property
    def watches_machines(self) -> bool:
        """Whether the policy is called when machines change and no job waits."""
        return self._policy.watches_machines

    def begin(self, machines: Sequence[Machine], rng: random.Random) -> None:
        """Call the policy's `begin`."""
        self._machine_count = len(machines)
        try:
            self._policy.begin(machines, rng)
        except _ANY_ERROR as error:
            self._raise_failure(error)

    def decisions(self, view: View) -> Iterator[Decision]:
        """Yield the policy's decisions. Each must be applied before the next one is requested."""
        try:
            decisions: object = self._policy.decide(view)
        except _ANY_ERROR as error:
            self._raise_failure(error)
        # The test for the abstract class is slow, and nearly all policies return a generator.
        if not isinstance(decisions, (GeneratorType, Iterator)):
            kind = type(decisions).__name__
            raise self.error(f"decide returned a {kind}; it must `yield Start(…)` for each decision instead")
        while True:
            try:
                decision: object = next(decisions, None)
            except _ANY_ERROR as error:
                self._raise_failure(error)
            if decision is None:
                return
            yield self._check(decision, view)

    def error(self, what: str) -> RunFailed:
        """Return the error for an invalid action of the policy."""
        return RunFailed(f"policy {self.name}: {what}")

    def _raise_failure(self, error: BaseException) -> NoReturn:
        """Raise a RunFailed with the policy's line; Batkube's own errors are raised unchanged."""
        if isinstance(error, BatkubeError):
            raise error
        place = line_in_policy(self._policy, error) or _format_line(traceback.extract_tb(error.__traceback__)[-1])
        raise self.error(f"failed in {place}: {type(error).__name__}: {error}") from error

    def _check(self, decision: object, view: View) -> Decision:
        """Return `decision` if it is valid. Whether the start of a job fits is not checked."""
        match decision:
            case Start() | Evict() | Reject() | Wait():
                pass
            case SwitchOff() | SwitchOn():
                unknown = [number for number in decision.machine_ids if not 0 <= number < self._machine_count]
                if unknown:
                    raise self.error(f"switched machines {unknown}, which do not exist")
            case WakeAt():
                if not isinstance(decision.at, int) or decision.at <= view.now:
                    raise self.error(
                        f"requested a wake-up at {decision.at!r}; it must be a whole number of nanoseconds after "
                        f"the present, {view.now}: write view.now + seconds(60)"
                    )
            case _:
                kind = type(decision).__name__
                raise self.error(
                    f"yielded a {kind}, which is not a Start, Evict, Reject, Wait, WakeAt, SwitchOff or SwitchOn"
                )
        return decision

    def machine_ids(self, start: Start) -> Sequence[int]:
        """Return the machine id of each pod of a job to start. Raises RunFailed for an invalid placement."""
        job, placement = start.job, start.placement
        if placement is None:
            raise self.error(f"started job {job.key} without a placement: it does not fit now")
        machine_ids: Sequence[int] | None = getattr(placement, "machine_ids", None)
        if machine_ids is None:
            kind = type(placement).__name__
            raise self.error(f"started job {job.key} at a {kind}, which is not a placement; use view.free.fit(job)")
        if len(machine_ids) != job.size:
            raise self.error(f"started job {job.key} on {len(machine_ids)} machines; it has {job.size} pods")
        if min(machine_ids) < 0 or max(machine_ids) >= self._machine_count:
            raise self.error(f"started job {job.key} on machines {machine_ids}, not all of which exist")
        return machine_ids
