"""Gantt charts: which job was on which machine, when."""
