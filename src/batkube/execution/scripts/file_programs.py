"""Programs that create, remove and read files (`touch`, `mkdir`, `rm`, `cat`, `ls`), and whether they succeed."""

from __future__ import annotations

from batkube.execution.scripts.state import Arguments, ScriptState


def touch(state: ScriptState, arguments: Arguments, *, is_folder: bool = False) -> None:
    """Create files or folders (`touch`, `mkdir`)."""
    state.status = 0
    options = _option_letters(arguments)
    if options - {"p"} or (options and not is_folder) or None in arguments:
        state.mark_uncertain("mkdir" if is_folder else "touch")
    for path in _paths(arguments):
        if is_folder and not options and state.has_file(path):
            state.status = 1
            continue
        parents = path.strip("/").split("/") if options else []
        for count in range(1, len(parents)):
            folder = "/" * path.startswith("/") + "/".join(parents[:count])
            state.files.write(folder, state.time, is_folder=True)
        is_created = state.files.write(path, state.time, is_folder=is_folder)
        if is_created is False:
            state.status = 1
        elif is_created is None and state.status == 0:
            state.mark_uncertain("mkdir" if is_folder else "touch")


def remove(state: ScriptState, arguments: Arguments) -> None:
    """Remove files, and folders with option -r (`rm`)."""
    options = _option_letters(arguments)
    state.status = 0
    if options - {"r", "R", "f"} or None in arguments:
        state.mark_uncertain("rm")
    for path in _paths(arguments):
        exists = True if options == {"r", "f"} else state.has_file(path)
        if exists is None and "f" not in options:
            state.mark_uncertain("rm")
        elif (not exists and "f" not in options) or (not options & {"r", "R"} and state.has_file(path, folder=True)):
            state.status = 1
        elif exists:
            state.files.remove(path, state.time)


def read(state: ScriptState, arguments: Arguments, *, missing: int | None = 1) -> None:
    """Read or list files (`cat`, `ls`); `missing` is the status for a missing file, None if programs differ."""
    state.write(None)
    exists = [state.has_file(path) and not state.has_file(path, folder=True) for path in _paths(arguments)]
    state.status = missing if False in exists else 0
    if None in (*exists, *arguments, state.status) or _option_letters(arguments):
        state.mark_uncertain("cat" if missing else "ls")


def _paths(arguments: Arguments) -> list[str]:
    return [argument for argument in arguments if argument is not None and not argument.startswith("-")]


def _option_letters(arguments: Arguments) -> set[str]:
    """Return the letters of all options."""
    return {
        letter for argument in arguments if argument is not None and argument.startswith("-") for letter in argument[1:]
    }
