"""Runs a script, or a module after `-m`, on the run's clock: `python .../batkube/clock my_scheduler.py`.

Batkube need not be installed for this interpreter: the package is loaded from the folder of this file.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys

_NAME = "batkube_clock"


def _load(folder: str) -> None:
    spec = importlib.util.spec_from_file_location(
        _NAME, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    assert spec is not None
    assert spec.loader is not None, "a package has a loader"
    package = sys.modules[_NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    package.install()


def main() -> None:
    """Run the script or module on the command line, as the interpreter would."""
    del sys.path[0]
    _load(os.path.dirname(os.path.abspath(__file__)))
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
