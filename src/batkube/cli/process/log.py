"""How much the command says of what it does, on standard error: warnings unless asked for more."""

from __future__ import annotations

import enum
import logging


class LogLevel(enum.StrEnum):
    """How grave something must be to be said."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"


_LEVEL_BY_COUNT = (LogLevel.WARNING, LogLevel.INFO, LogLevel.DEBUG)


def configure_logging(level: LogLevel | None, count: int = 0) -> None:
    """Say what is of `level` or graver; unless that is given, `count` is how often -v was."""
    chosen = level or _LEVEL_BY_COUNT[min(count, len(_LEVEL_BY_COUNT) - 1)]
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(name)s: %(message)s"))
    # Of ours alone: libraries speak for themselves.
    logger = logging.getLogger("batkube")
    logger.handlers = [handler]
    logger.setLevel(chosen.upper())
    if chosen is not LogLevel.DEBUG:
        # Its remarks are about fonts and caches, and none of them changes a picture.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
