"""The command `batkube`.

Exit codes are part of the interface: 0 done, 1 the run failed, 2 bad input or usage, 130 interrupted before or after
the run itself.

Next to nothing is imported before `main` is entered, since Ctrl-C may come from the first moment on.
"""

from __future__ import annotations

import sys

#: 128 and the number of SIGINT, as shells count.
INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit."""
    try:
        from batkube.cli.answering import answer

        code = answer()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = INTERRUPTED
    sys.exit(code)
