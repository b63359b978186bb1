"""The verbs, the same for all kinds: create, get, list, watch, update, patch, delete, and the sub-resources."""
