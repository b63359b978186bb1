"""The version; the package takes its own from here."""

from __future__ import annotations

__version__ = "0.3.0"
