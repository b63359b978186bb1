"""Clock pages: the memory that programs under virtual time share with the coordinator, and detection of idleness."""
