"""Time that follows the real clock, for runs with real schedulers: as in the 2020 prototype, or at a constant speed."""
