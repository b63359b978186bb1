"""Connections of a run on virtual time: read and written only when the coordinator says so."""
