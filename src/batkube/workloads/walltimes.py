"""Walltimes that no run reaches: traces have them where none was meant, as 2**63 seconds or as many nines as fit."""

from __future__ import annotations

from batkube.kernel.fidelity import FidelityNote

ENDLESS = FidelityNote("workload", "a walltime is more than the 292 years a run can last, and counts as none")
