"""One run: read and check the inputs, assemble the parts, run to the end, and write the output files."""
