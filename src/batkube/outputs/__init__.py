"""Output files of a run, and the charts, tables and reports made from them."""
