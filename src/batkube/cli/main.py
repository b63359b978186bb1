"""The command `batkube`.

Almost everything is imported inside `main`, so that Ctrl-C during the imports prints no traceback.
"""

from __future__ import annotations

import sys

from batkube.cli.process.exit_codes import INTERRUPTED


def main() -> None:
    """Run the command line and exit."""
    try:
        from batkube.cli.invocation import invoke

        code = invoke()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = INTERRUPTED
    sys.exit(code)
