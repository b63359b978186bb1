"""Configure logging to standard error, by default of warnings."""

from __future__ import annotations

import enum
import logging


class LogLevel(enum.StrEnum):
    """The minimum severity of log messages."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"


_LEVEL_BY_COUNT = (LogLevel.WARNING, LogLevel.INFO, LogLevel.DEBUG)


def configure_logging(level: LogLevel | None, count: int = 0) -> None:
    """Log messages of at least this level; if it is None, `count`, the number of -v options, determines it."""
    effective_level = level or _LEVEL_BY_COUNT[min(count, len(_LEVEL_BY_COUNT) - 1)]
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(name)s: %(message)s"))
    # Only Batkube's own loggers: libraries configure theirs.
    logger = logging.getLogger("batkube")
    logger.handlers = [handler]
    logger.setLevel(effective_level.upper())
    if effective_level is not LogLevel.DEBUG:
        # Its warnings are about fonts and caches, which do not affect figures.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
