"""The version, from the installed package."""

from __future__ import annotations

import importlib.metadata

VERSION = importlib.metadata.version("batkube")
