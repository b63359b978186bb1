"""The replay of a usage trace: an actor for the job, and one for each process of the trace.

Imitated: Batsim 4.2.1, usage_trace_replayer_process in src/jobs_execution.cpp. At the walltime of the job, or when it
is killed, all of them end at once.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.batsim.simgrid import actors
from batkube.batsim.simgrid.actors import Actor, ActorKernel, Sleep
from batkube.execution.profiles.processes import ChildProcess, CompletionQueue, OutgoingMessage, ProfileProcess
from batkube.fluid.tasks import Task


class TraceReplay:
    """Runs the process of a profile, and its child processes, as actors."""

    def __init__(
        self,
        kernel: ActorKernel,
        host: str,
        run_task: Callable[[Task], actors.ActorRoutine],
        abort_wait: Callable[[Actor], None],
    ) -> None:
        """`run_task` runs a task to its end, and `abort_wait` cancels the task that an actor waits for."""
        self._kernel = kernel
        self._host = host
        self._run_task = run_task
        self._abort_wait = abort_wait
        self._actors: list[Actor] = []
        self._waiting: dict[CompletionQueue, Actor] = {}

    def start(self, process: ProfileProcess, on_end: Callable[[int], None]) -> None:
        """Start a process; call `on_end` with its exit code."""
        self._spawn(self._run_main(process, on_end))

    def stop(self) -> None:
        """Kill all actors, and cancel what they wait for."""
        for actor in self._actors:
            self._abort_wait(actor)
            self._kernel.kill(actor)

    def _spawn(self, code: actors.ActorCode) -> None:
        self._actors.append(self._kernel.spawn(code, self._host))

    def _run_main(self, process: ProfileProcess, on_end: Callable[[int], None]) -> actors.ActorCode:
        on_end((yield from self._run_process(process)))

    def _run_child(self, process: ProfileProcess) -> actors.ActorCode:
        yield from self._run_process(process)
        for queue in [queue for queue in self._waiting if queue.arrived]:
            self._kernel.resume(self._waiting.pop(queue))

    def _run_process(self, process: ProfileProcess) -> actors.ActorRoutine:
        """Run a process to its end, and return its exit code."""
        lag = 0.0
        while True:
            try:
                wait = next(process)
            except StopIteration as end:
                code: int = end.value
                return code
            match wait:
                case ChildProcess():
                    self._spawn(self._run_child(wait.process))
                case CompletionQueue():
                    yield _AwaitCompletion(self._waiting, wait)
                case Task():
                    wait.lag = lag
                    yield from self._run_task(wait)
                    lag = wait.lag
                case OutgoingMessage():
                    pass  # Usage traces contain no messages.
                case _ if wait > 0:
                    yield Sleep(wait)


class _AwaitCompletion:
    """Wait until a child process has ended."""

    __slots__ = ("_queue", "_waiting")

    def __init__(self, waiting: dict[CompletionQueue, Actor], queue: CompletionQueue) -> None:
        self._waiting = waiting
        self._queue = queue

    def handle(self, kernel: ActorKernel, actor: Actor) -> None:
        """Resume the actor at once if a child has ended; otherwise the next child that ends resumes it."""
        if self._queue.arrived:
            kernel.resume(actor)
        else:
            self._waiting[self._queue] = actor
