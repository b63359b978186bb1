"""Writers: the CSV files of a run, row by row."""
