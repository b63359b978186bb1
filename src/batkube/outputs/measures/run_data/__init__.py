"""Run data: the files of an output folder, read back as frames."""
