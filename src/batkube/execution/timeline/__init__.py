"""Timeline: events of an events file, such as node failures, and their execution."""
