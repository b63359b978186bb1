"""Printing for `kubectl get`: columns and cells of a Table.

kubectl requests a Table, which the server prints. Columns are data (`columns.json`); each kind has a small function for
its cells (`api.groups`). Custom resources define their own columns as JSONPaths
(`api.custom.instances.printer_columns`).
"""
