"""What `kubectl get` shows: columns and cells, made into a Table.

The server prints, not kubectl: it is asked for a Table. Columns are data; what fills them is one small function per
kind (`api.groups`). Custom resources bring their own columns, which are JSONPaths (`api.custom.columns`).
"""
