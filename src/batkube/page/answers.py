"""Answers to the questions of a page: a text, or why there is none, as JSON."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from batkube.kernel.errors import InputError

Answer = tuple[str, bytes]


class NoAnswer(Exception):
    """There is no answer; the message says why."""


def text_answer(find: Callable[[], str]) -> Answer:
    """Return the text that `find` returns, or the message of NoAnswer or InputError."""
    try:
        answer = {"message": find(), "isRefused": False}
    except (NoAnswer, InputError) as error:
        answer = {"message": str(error), "isRefused": True}
    return "application/json", msgspec.json.encode(answer)
