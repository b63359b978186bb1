"""Parts of a run: completion tracking, auditor, energy, Batsim connection."""
