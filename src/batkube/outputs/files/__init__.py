"""What a run writes: a folder that is complete or not there, and the files in it."""
