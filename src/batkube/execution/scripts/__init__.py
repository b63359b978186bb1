"""Shell scripts of containers, read for how long they take and how they end; nothing is executed."""
