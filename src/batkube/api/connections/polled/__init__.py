"""Connections of a run in virtual time: read and written only when the coordinator says so."""
