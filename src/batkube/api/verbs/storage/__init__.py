"""Storage verbs: create, update, delete, list and watch objects in the store."""
