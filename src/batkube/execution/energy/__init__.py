"""Energy of machines and jobs: what machines draw, what jobs consume, and machines that sleep."""
