"""Usage traces, replayed by actors: one that gathers, and one for each process of the trace.

Imitated: Batsim 4.2.1, usage_trace_replayer_process. At its walltime, or killed, all of them are gone at once.
"""

from __future__ import annotations

from collections.abc import Callable

from batkube.batsim import actors
from batkube.batsim.actors import Actor, Scene, Sleep
from batkube.execution.profile_scripts import Mail, Process, Script, Speech
from batkube.fluid.tasks import Task


class TraceReplay:
    """A script of a job and the processes that it begins."""

    def __init__(
        self, scene: Scene, host: str, work: Callable[[Task], actors.Work], abandon: Callable[[Actor], None]
    ) -> None:
        """`work` runs a task to its end, and `abandon` breaks off what an actor waits for."""
        self._scene = scene
        self._host = host
        self._work = work
        self._abandon = abandon
        self._actors: list[Actor] = []
        self._readers: dict[Mail, Actor] = {}

    def begin(self, script: Script, on_end: Callable[[int], None]) -> None:
        """Have the script played; `on_end` hears its exit code."""
        self._enter(self._gather(script, on_end))

    def stop(self) -> None:
        """Have everybody go, wherever they are."""
        for actor in self._actors:
            self._abandon(actor)
            self._scene.end(actor)

    def _enter(self, script: actors.Script) -> None:
        self._actors.append(self._scene.enter(script, self._host))

    def _gather(self, script: Script, on_end: Callable[[int], None]) -> actors.Script:
        on_end((yield from self._play(script)))

    def _process(self, script: Script) -> actors.Script:
        yield from self._play(script)
        for mail in [mail for mail in self._readers if mail.arrived]:
            self._scene.go_on(self._readers.pop(mail))

    def _play(self, script: Script) -> actors.Work:
        """Ask for what the script waits for, one thing after the other, and return its exit code."""
        lag = 0.0
        while True:
            try:
                wait = next(script)
            except StopIteration as end:
                code: int = end.value
                return code
            match wait:
                case Process():
                    self._enter(self._process(wait.script))
                case Mail():
                    yield _Reading(self._readers, wait)
                case Task():
                    wait.lag = lag
                    yield from self._work(wait)
                    lag = wait.lag
                case Speech():
                    pass  # What is replayed says nothing: messages are sent where profiles are executed.
                case _ if wait > 0:
                    yield Sleep(wait)


class _Reading:
    """Wait until something has come."""

    __slots__ = ("_mail", "_readers")

    def __init__(self, readers: dict[Mail, Actor], mail: Mail) -> None:
        self._readers = readers
        self._mail = mail

    def begin(self, scene: Scene, actor: Actor) -> None:
        """Go on at once if it has, and else with whoever brings it."""
        if self._mail.arrived:
            scene.go_on(actor)
        else:
            self._readers[self._mail] = actor
