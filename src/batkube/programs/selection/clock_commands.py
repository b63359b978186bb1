"""Programs given as command lines with the clock that they are to live on: `CLOCK:COMMAND`.

They may be in any language, and are started as the command says, in surroundings in which clients of Kubernetes find
their way (see `environment`).
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
    """Return the program of a command line, of which `words` are the parts.

    Raises InputError if there is no such program, or if it cannot live on such a clock.
    """
    kind = start.clock
    _check_clock(kind, name, time)
    first, *arguments = words
    program = _find_executable(first, name)
    script = next((Path(word) for word in words if "/" in word and Path(word).is_file()), program)
    command: tuple[str, ...] = (str(program),)
    if kind is ClockKind.PYTHON and program.suffix == ".py":
        # The package needs nothing else, and is run by its path.
        command = (sys.executable, str(Path(clock.__file__).parent), str(program))
    return ExternalProgram(name, script.resolve(), start, tuple(arguments), command=command)


def start_with_clock(kind: ClockKind) -> ProgramStart:
    """Return the start of a scheduler of which nothing is known but its clock; it serves whatever no other does."""
    return ProgramStart((), {}, DEFAULT_SCHEDULER, clock=kind)


def _check_clock(kind: ClockKind, name: str, time: TimeMode) -> None:
    """Refuse a program on real time where time is virtual."""
    if kind is ClockKind.REAL and time is TimeMode.EXACT:
        raise InputError(
            f"program {name!r}",
            problem="lives on the machine's clock, and so nobody could tell when it is idle",
            remedy="write --time paced or --time realtime, or preload: for a program that is dynamically linked",
        )


def _find_executable(word: str, name: str) -> Path:
    """Return the program that a word names: by its path, or as a shell would find it."""
    path = Path(word) if "/" in word or Path(word).is_file() else shutil.which(word, path=search_path())
    if path is None or not Path(path).is_file():
        raise InputError(f"program {name!r}", problem=f"there is no program {word!r}", remedy="check the path")
    return Path(path).absolute()
