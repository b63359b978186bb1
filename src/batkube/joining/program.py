"""Run a Batkube command as an external Python program of a run; the entry `kubeflux` of the catalogue names it.

Usage: `python program.py kubeflux --kubeconfig K`.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    # Replace the folder of this script by the root of its package.
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    sys.argv[0] = "batkube"
    runpy.run_module("batkube", run_name="__main__", alter_sys=True)
