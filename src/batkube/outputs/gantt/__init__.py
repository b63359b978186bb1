"""Gantt charts: who was where, when."""
