"""Exports of a run to the formats of other tools: Perfetto, Chrome's trace viewer, Parquet."""
