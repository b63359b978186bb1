"""The verbs, for every kind alike: create, get, list, watch, update, patch, delete, and the sub-resources."""
