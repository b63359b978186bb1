"""Fidelity notes on the walltimes of traces."""

from __future__ import annotations

from batkube.kernel.fidelity import FidelityNote

#: Some traces write "no limit" as 2**63 seconds, or as a row of nines.
WALLTIME_TOO_LONG = FidelityNote("workload", "a walltime is above 292 years, the longest possible run: no limit is set")
WALLTIME_OVERRUN = FidelityNote(
    "workload", "a job of the trace ran at least as long as its walltime; here it is killed at its walltime"
)
