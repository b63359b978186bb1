"""What `batkube` exits with, which is part of its interface; 0 is done.

Imports nothing: these are needed before and after everything else.
"""

from __future__ import annotations

#: The run failed; its input or usage is at fault.
FAILED, BAD_INPUT = 1, 2
#: Interrupted before or after the run itself: 128 and the number of SIGINT, as shells count.
INTERRUPTED = 130
