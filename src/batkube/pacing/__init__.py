"""Real schedulers whose clock follows the real one: by the rules of the 2020 prototype, or at a constant speed."""
