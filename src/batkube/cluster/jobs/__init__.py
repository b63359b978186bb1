"""Jobs: executions, outcomes and the forms in which jobs are submitted."""
