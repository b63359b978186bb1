"""A program that runs on the run's clock: its process, its page and the last lines it logged."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from batkube.kernel.errors import RunFailed
from batkube.timing.page import ClockPage

_SHOWN_LINES = 15
_GRACE_S = 5.0


class AttachedProcess:
    """One program under virtual time."""

    def __init__(
        self, name: str, command: Sequence[str], page: ClockPage, log: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.page = page
        self._log_path = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**environment, **page.environment},
                pass_fds=page.descriptors,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the program has ended by itself."""
        return self._process.poll() is not None

    def failure(self, problem: str) -> RunFailed:
        """Return the failure of the run by this program, with the last lines of its log."""
        lines = self._log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
        shown = "\n".join(f"    {line}" for line in lines) or "    (it logged nothing)"
        return RunFailed(f"{self.name} {problem}; its last lines, of {self._log_path}:\n{shown}")

    def ended(self) -> RunFailed:
        """Return the failure of a run whose program is gone."""
        code = self._process.wait()
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return self.failure(how)

    def cpu_s(self) -> float:
        """Return the CPU time that the program has used, user and system."""
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> int:
        """Return how much memory the program has at most used."""
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)

    def stop(self) -> None:
        """End the program, which stands still while nobody moves its clock: asking it politely would be in vain."""
        if not self.has_ended:
            self._process.kill()
            self._process.wait(_GRACE_S)
        self.page.close()
