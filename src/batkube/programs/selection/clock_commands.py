"""Programs from command lines with a clock: `CLOCK:COMMAND`.

They may be written in any language. The command runs in an environment in which Kubernetes clients find the run's API
(see `startup.environment`).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from batkube import clock
from batkube.cluster.mapping import DEFAULT_SCHEDULER
from batkube.kernel.errors import InputError
from batkube.programs.program import ExternalProgram
from batkube.schedulers.clocks import ClockKind
from batkube.schedulers.installed import search_path
from batkube.schedulers.named_programs import ProgramStart
from batkube.timing.time_rules import TimeMode


def program_of_command(start: ProgramStart, name: str, words: list[str], time: TimeMode) -> ExternalProgram:
    """Return the program of a command line that was split into `words`.

    Raises InputError if the executable does not exist or cannot use this clock.
    """
    kind = start.clock
    _check_clock(kind, name, time)
    first, *arguments = words
    program = _find_executable(first, name)
    script = next((Path(word) for word in words if "/" in word and Path(word).is_file()), program)
    command: tuple[str, ...] = (str(program),)
    if kind is ClockKind.PYTHON and program.suffix == ".py":
        # The clock package needs no other module, and is run by its path.
        command = (sys.executable, str(Path(clock.__file__).parent), str(program))
    return ExternalProgram(name, script.resolve(), start, tuple(arguments), command=command)


def start_with_clock(kind: ClockKind) -> ProgramStart:
    """Return how to start a scheduler about which only the clock is known; it serves the default scheduler name."""
    return ProgramStart((), {}, DEFAULT_SCHEDULER, clock=kind)


def _check_clock(kind: ClockKind, name: str, time: TimeMode) -> None:
    """Reject a program on the machine's clock if time is virtual."""
    if kind is ClockKind.REAL and time is TimeMode.EXACT:
        raise InputError(
            f"program {name!r}",
            problem="runs on the machine's clock, so Batkube cannot detect when it is idle",
            remedy="use --time paced or --time realtime, or preload: if the program is dynamically linked",
        )


def _find_executable(word: str, name: str) -> Path:
    """Return the executable with this path, or with this name on the PATH."""
    path = Path(word) if "/" in word or Path(word).is_file() else shutil.which(word, path=search_path())
    if path is None or not Path(path).is_file():
        raise InputError(
            f"program {name!r}", problem=f"the executable {word!r} does not exist", remedy="check the path"
        )
    return Path(path).absolute()
