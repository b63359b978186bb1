"""Starts a command of ours as a program in Python on the clock of a run: the catalogue's entry `kubeflux` names it.

Whatever runs a script by its path can run it: `python program.py kubeflux --kubeconfig K`.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # In the place of this script's folder: the very Batkube that the script is a part of.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    sys.argv[0] = "batkube"
    runpy.run_module("batkube", run_name="__main__", alter_sys=True)
