"""Explain: why each job, pod and node of a finished run was where it was, when."""
