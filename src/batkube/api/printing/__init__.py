"""What `kubectl get` shows: the columns of every kind, and the cells of an object.

The server prints, not kubectl: it is asked for a Table. Columns are data (`columns.json`, derived from Kubernetes by
`scripts/derive_columns.py`); cells are one small function per kind, by topic, listed in `catalogue`. Custom resources
bring their own columns, which are JSONPaths (`custom`, `jsonpaths`).
"""

from __future__ import annotations

from batkube.api.printing.printers import Printer

__all__ = ["Printer"]
