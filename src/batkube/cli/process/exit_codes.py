"""The exit codes of `batkube`, which are part of its interface; 0 is success.

This module imports nothing, because `main` needs it before everything else.
"""

from __future__ import annotations

#: The run failed; the input or the usage is wrong.
FAILED, BAD_INPUT = 1, 2
#: Interrupted before or after the run itself: 128 + SIGINT, the convention of shells.
INTERRUPTED = 130
