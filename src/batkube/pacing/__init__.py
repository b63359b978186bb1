"""Outside schedulers on a clock that goes with the real one: by the rules of 2020 (`cycles`) or at a constant speed."""
