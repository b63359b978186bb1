"""The version, from the installed package."""

from __future__ import annotations

import importlib.metadata

__version__ = importlib.metadata.version("batkube")
