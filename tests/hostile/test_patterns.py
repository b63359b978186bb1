"""Long texts that are nearly what is expected: each is read or refused in time that grows with its length."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from batkube.api.cel.formats import FORMATS
from batkube.api.cel.time_functions import duration, timestamp, worded_duration
from batkube.api.cel.values import CelError
from batkube.api.decoding.quantities import stored_quantity
from batkube.kernel import instants
from batkube.kernel.numbers import float_of, int_of
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
    "duration": duration,
    "worded-duration": worded_duration,
    "format-duration": FORMATS["duration"],
    "timestamp": timestamp,
    "quantity": parse_quantity,
    "stored-quantity": stored_quantity,
    "whole": int_of,
    "float": float_of,
    "length-of-time": instants.duration,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_no_number_is_found_out_quickly(reader: str, text: str) -> None:
    began = time.thread_time()

    with suppress(CelError, ValueError):
        READERS[reader](TEXTS[text])

    assert time.thread_time() - began < 1
