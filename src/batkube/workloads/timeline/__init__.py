"""Events files: scheduled changes of the cluster during a run."""
