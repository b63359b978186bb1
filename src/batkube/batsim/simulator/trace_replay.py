"""Usage traces, replayed by actors: one that gathers, and one for each process of the trace.

Imitated: Batsim 4.2.1, usage_trace_replayer_process. At its walltime, or killed, all of them are gone at once.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.batsim.simgrid import actors
from batkube.batsim.simgrid.actors import Actor, ActorKernel, Sleep
from batkube.execution.profiles.processes import ChildProcess, CompletionQueue, OutgoingMessage, ProfileProcess
from batkube.fluid.tasks import Task


class TraceReplay:
    """A script of a job and the processes that it begins."""

    def __init__(
        self,
        scene: ActorKernel,
        host: str,
        work: Callable[[Task], actors.ActorRoutine],
        abandon: Callable[[Actor], None],
    ) -> None:
        """`work` runs a task to its end, and `abandon` breaks off what an actor waits for."""
        self._scene = scene
        self._host = host
        self._run_task = work
        self._abort_wait = abandon
        self._actors: list[Actor] = []
        self._waiting: dict[CompletionQueue, Actor] = {}

    def start(self, script: ProfileProcess, on_end: Callable[[int], None]) -> None:
        """Have the script played; `on_end` hears its exit code."""
        self._spawn(self._run_main(script, on_end))

    def stop(self) -> None:
        """Have everybody go, wherever they are."""
        for actor in self._actors:
            self._abort_wait(actor)
            self._scene.kill(actor)

    def _spawn(self, script: actors.ActorCode) -> None:
        self._actors.append(self._scene.spawn(script, self._host))

    def _run_main(self, script: ProfileProcess, on_end: Callable[[int], None]) -> actors.ActorCode:
        on_end((yield from self._run_script(script)))

    def _run_process(self, script: ProfileProcess) -> actors.ActorCode:
        yield from self._run_script(script)
        for mail in [mail for mail in self._waiting if mail.arrived]:
            self._scene.resume(self._waiting.pop(mail))

    def _run_script(self, script: ProfileProcess) -> actors.ActorRoutine:
        """Ask for what the script waits for, one thing after the other, and return its exit code."""
        lag = 0.0
        while True:
            try:
                wait = next(script)
            except StopIteration as end:
                code: int = end.value
                return code
            match wait:
                case ChildProcess():
                    self._spawn(self._run_process(wait.process))
                case CompletionQueue():
                    yield _WaitForMail(self._waiting, wait)
                case Task():
                    wait.lag = lag
                    yield from self._run_task(wait)
                    lag = wait.lag
                case OutgoingMessage():
                    pass  # What is replayed says nothing: messages are sent where profiles are executed.
                case _ if wait > 0:
                    yield Sleep(wait)


class _WaitForMail:
    """Wait until something has come."""

    __slots__ = ("_mail", "_waiting")

    def __init__(self, readers: dict[CompletionQueue, Actor], mail: CompletionQueue) -> None:
        self._waiting = readers
        self._mail = mail

    def handle(self, scene: ActorKernel, actor: Actor) -> None:
        """Go on at once if it has, and else with whoever brings it."""
        if self._mail.arrived:
            scene.resume(actor)
        else:
            self._waiting[self._mail] = actor
