"""The commands of a session by name and abbreviation.

Imitates the table in flux-sched resource/utilities/command.cpp.
"""

from __future__ import annotations

import dataclasses

_MANY = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class QueryCommand:
    """The usage of a command, its number of words, and the method of the session that executes it."""

    usage: str
    words: tuple[int, int]
    method: str


def _commands() -> dict[str, QueryCommand]:
    table = [
        ("match", "m", "OPERATION JOBSPEC", (3, 3)),
        ("multi-match", "M", "OPERATION JOBSPEC JOBSPEC…", (4, _MANY)),
        ("update", "u", "allocate|reserve FORMAT FILE JOB START DURATION", (7, 7)),
        ("attach", "j", "FILE", (2, 2)),
        ("remove", "", "PATH true | IDSET false", (3, 3)),
        ("find", "f", "CRITERIA", (2, _MANY)),
        ("cancel", "c", "JOB [stats]", (2, 3)),
        ("partial-cancel", "pc", "JOB jgf|rv1exec FILE [stats]", (4, 5)),
        ("set-property", "p", "PATH KEY=VALUE", (3, 3)),
        ("get-property", "g", "PATH", (2, 2)),
        ("set-status", "t", "PATH up|down", (3, 3)),
        ("get-status", "e", "PATH", (2, 2)),
        ("list", "l", "", (1, _MANY)),
        ("info", "i", "JOB", (2, 2)),
        ("stat", "s", "", (1, 1)),
        ("cat", "a", "FILE", (2, 2)),
        ("help", "h", "[COMMAND]", (1, _MANY)),
    ]
    commands: dict[str, QueryCommand] = {}
    for name, abbreviation, arguments, words in table:
        # A method named `list` would hide the type inside the class.
        method = "list_jobs" if name == "list" else name.replace("-", "_")
        command = QueryCommand(f"{name} {arguments}".strip(), words, method)
        commands[name] = command
        if abbreviation:
            commands[abbreviation] = command
    return commands


#: By name and by abbreviation.
COMMANDS = _commands()
