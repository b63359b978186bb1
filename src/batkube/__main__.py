"""`python -m batkube` is the command line."""

from __future__ import annotations

from batkube.cli.main import main

main()
