"""A program attached to the run's clock: its process, clock page, log and resource usage."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from batkube.kernel.errors import InputError, RunFailed
from batkube.timing.pages.clock_page import ClockPage
from batkube.timing.pages.interruptions import Interruptions
from batkube.timing.processes.parent_death import kill_with_parent
from batkube.timing.processes.program_log import ProgramLog


class ProcessUsage(NamedTuple):
    """The resources that a program has used, once it has ended."""

    cpu_s: float
    peak_memory_bytes: int


class AttachedProcess:
    """One program under virtual time."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        page: ClockPage,
        log: ProgramLog,
        environment: Mapping[str, str],
        prepare: Callable[[], None] | None = None,
        descriptors: Sequence[int] = (),
    ) -> None:
        """Start the program. It inherits `descriptors`; `prepare` is called in the new process before exec."""
        self.name = name
        self.page = page
        self.log = log
        #: The resources that it used; set once it has ended.
        self.usage = ProcessUsage(0.0, 0)
        #: The thread that interrupts it at random, if any.
        self.interruptions: Interruptions | None = None
        #: Removes the folders that were made for it, when it has ended.
        self.release: Callable[[], None] | None = None
        #: How it ended, if it ended by itself and the run failed therefore.
        self.crash = ""
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log.sink,
                stderr=subprocess.STDOUT,
                env={**environment, **page.environment},
                pass_fds=(*page.descriptors, *descriptors),
                start_new_session=True,
                preexec_fn=_chain(kill_with_parent(), prepare),
            )
        except subprocess.SubprocessError as error:
            page.close()
            raise InputError(
                f"program {name!r}",
                problem="cannot get its own mount namespace, which its service account or its mounts need",
                remedy="allow user namespaces (unshare(2)), or choose one that uses $KUBECONFIG and needs no mounts",
            ) from error
        except OSError as error:
            page.close()
            raise InputError(
                f"program {name!r}",
                problem=f"cannot be started: {error.strerror or error}",
                remedy="use a program built by `batkube schedulers build`",
            ) from error
        log.close_sink()
        page.set_process(self.pid)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the program has ended by itself."""
        if self._process.returncode is None:
            self._reap(os.WNOHANG)
        return self._process.returncode is not None

    def _reap(self, flags: int) -> None:
        """Reap the process if it has ended, and record its resource usage, which Popen does not."""
        pid, status, used = os.wait4(self.pid, flags)
        if pid:
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self.usage = ProcessUsage(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)

    def failure(self, problem: str) -> RunFailed:
        """Return an error of the run caused by this program, with the last lines of its log."""
        path = self.log.path
        end = "\n".join(f"    {line}" for line in self.log.last_lines()) or "    (it logged nothing)"
        return RunFailed(f"{self.name} {problem}; its last lines, of {path.parent.name}/{path.name}:\n{end}")

    def exit_failure(self, *, needs_page: bool = True) -> RunFailed:
        """Return the error for a program that has ended; `needs_page` if it should have opened its page."""
        code = self._process.returncode
        end_text = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if needs_page and not self.page.pid:
            end_text = f"{end_text} and never read the virtual clock; {self.page.remedy}"
        self.crash = end_text
        return self.failure(end_text)

    def cpu_ns(self) -> int:
        """Return the CPU time that the running program has used, in nanoseconds (clock_getcpuclockid(3))."""
        return time.clock_gettime_ns(~self.pid << 3 | 2)

    def stop(self) -> None:
        """Kill the program. It could not react to SIGTERM, since its clock no longer moves."""
        if self.interruptions is not None:
            self.interruptions.stop()
        if not self.has_ended:
            self._process.kill()
            self._reap(0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # its child processes
        self.log.close()
        self.page.close()
        if self.release is not None:
            self.release()


def _chain(first: Callable[[], None] | None, second: Callable[[], None] | None) -> Callable[[], None] | None:
    """Return a function that calls both, or None if there is nothing to call."""

    def both() -> None:
        for step in (first, second):
            if step is not None:
                step()

    return both if first or second else None
