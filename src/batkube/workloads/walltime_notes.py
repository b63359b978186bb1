"""What is noted of the walltimes of traces: those that no run reaches, and those that jobs did reach."""

from __future__ import annotations

from batkube.kernel.fidelity import FidelityNote

#: Traces have such walltimes where none was meant, as 2**63 seconds or as many nines as fit.
WALLTIME_TOO_LONG = FidelityNote("workload", "a walltime is more than the 292 years a run can last, and counts as none")
WALLTIME_OVERRUN = FidelityNote(
    "workload", "a job of the trace ran at least as long as its walltime; here it is killed at its walltime"
)
