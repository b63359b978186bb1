"""The command `batkube`.

Next to nothing is imported before `main` is entered, since Ctrl-C may come from the first moment on.
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
