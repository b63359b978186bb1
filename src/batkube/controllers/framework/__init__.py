"""Framework: work queue, owner index and pod control, which all controllers share."""
