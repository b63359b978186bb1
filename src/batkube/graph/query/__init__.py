"""resource-query: sessions, commands, searches and drawings."""
