"""Traces of clusters: SWF, Slurm accounting, Alibaba, Google, openb."""
