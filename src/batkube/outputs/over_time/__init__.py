"""Charts over time: machine states, free capacity, waiting jobs."""
