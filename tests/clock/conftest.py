"""Fixture: the clock page of a session."""

from tests.timing.conftest import session

__all__ = ["session"]
