"""A real kube-controller-manager for a served cluster: an ordinary client on the real clock.

The binary is that of runs. Without a clock page it reads the machine's clock, so it only works with a cluster at real
speed.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from batkube.kernel.errors import RunFailed
from batkube.programs.program import ExternalProgram
from batkube.programs.selection.controller_manager import CONTROLLERS_FLAG, NODE_LIFECYCLE
from batkube.programs.startup.command_lines import arguments_of
from batkube.timing.processes.parent_death import kill_with_parent
from batkube.timing.processes.program_log import last_lines

#: The name of the log file in the output folder.
LOG_FILE = "kube-controller-manager.log"
#: All controllers, except for the one that marks nodes as failed if they do not report every few seconds.
_CONTROLLERS = f"{CONTROLLERS_FLAG}*,-{NODE_LIFECYCLE}"


class ControllerManagerProcess:
    """The process and its log file."""

    def __init__(self, program: ExternalProgram, kubeconfig: Path, log: Path) -> None:
        self._name = program.name
        self._log = log
        if not any(text.startswith(CONTROLLERS_FLAG) for text in program.arguments):
            program = replace(program, arguments=(*program.arguments, _CONTROLLERS))
        command = [str(program.binary), *arguments_of(program, {"kubeconfig": str(kubeconfig)})]
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={"TZ": "UTC"},
                start_new_session=True,
                preexec_fn=kill_with_parent(),
            )

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Kill the process when the block ends."""
        try:
            yield
        finally:
            self._process.kill()
            self._process.wait()

    async def wait_for_exit(self) -> None:
        """Wait until the process exits by itself, then raise RunFailed: the cluster has no controllers left."""
        code = await asyncio.to_thread(self._process.wait)
        lines = last_lines(self._log.read_text(encoding="utf-8", errors="replace"))
        log_end = "\n".join(f"    {line}" for line in lines) or "    (the log is empty)"
        raise RunFailed(f"{self._name} ended with exit code {code}; the last lines of {self._log.name}:\n{log_end}")
