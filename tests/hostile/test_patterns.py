"""Long texts that almost match are parsed or rejected in linear time."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from batkube.api.cel.functions.string_formats import FORMATS
from batkube.api.cel.functions.times import parse_duration, parse_timestamp, parse_worded_duration
from batkube.api.cel.values import CelError
from batkube.api.decoding.stored_quantities import stored_quantity
from batkube.kernel import instants
from batkube.kernel.numbers import parse_float, parse_int
from batkube.kernel.quantities import parse_quantity

LENGTH = 100_000
TEXTS = {
    "digits": "9" * LENGTH,
    "digits-and-a-letter": "9" * LENGTH + "x",
    "zeros-and-a-letter": "0" * LENGTH + "x",
    "a-fraction-and-a-letter": "9" * (LENGTH // 2) + "." + "9" * (LENGTH // 2) + "x",
    "parts": "1ms" * (LENGTH // 3) + "!",
    "spaces": "1" + " " * LENGTH + "!",
    "numbers": "1 " * (LENGTH // 2),
    "an-exponent": "1e" + "9" * LENGTH + "x",
}
READERS: dict[str, Callable[[str], object]] = {
    "duration": parse_duration,
    "worded-duration": parse_worded_duration,
    "format-duration": FORMATS["duration"],
    "timestamp": parse_timestamp,
    "quantity": parse_quantity,
    "stored-quantity": stored_quantity,
    "whole": parse_int,
    "float": parse_float,
    "length-of-time": instants.duration,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", TEXTS)
def test_long_invalid_texts_are_rejected_quickly(reader: str, text: str) -> None:
    began = time.thread_time()

    with suppress(CelError, ValueError):
        READERS[reader](TEXTS[text])

    assert time.thread_time() - began < 1
