"""Run a command of Batkube in this process and write the modules that it executed: `trace_modules.py FILE COMMAND…`.

Only functions count: importing a module does not execute it in this sense.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from pathlib import Path
from types import FrameType

import batkube
from batkube.cli.invocation import invoke

SOURCE = f"{Path(batkube.__file__).parent}/"


def main(result: Path, command: list[str]) -> None:
    """Run a command; write the executed modules, as `package/module.py`, and exit with its code."""
    files: set[str] = set()

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # set for functions only
            files.add(frame.f_code.co_filename)

    sys.argv = ["batkube", *command]
    os._exit = sys.exit  # type: ignore[assignment] # `serve` skips Python's shutdown, which writes the result here
    sys.setprofile(profile)
    try:
        sys.exit(invoke())
    finally:
        sys.setprofile(None)
        modules = sorted(file.removeprefix(SOURCE) for file in files if file.startswith(SOURCE))
        result.write_text(json.dumps(modules), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
