"""Decodes JSON files, with the place of an error in the message."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from batkube.kernel.errors import InputError

_Decoded = TypeVar("_Decoded")


def decode_json(path: Path, content: bytes, type: type[_Decoded], *, remedy: str) -> _Decoded:
    """Decode a JSON file as `type`. Raises InputError; `remedy` is the advice for a wrong type."""
    try:
        return msgspec.json.decode(content, type=type)
    except msgspec.ValidationError as error:
        # The message has the form "Expected `int`, got `str` - at `$.graph.nodes[0].id`".
        problem, _, place = str(error).partition(" - at `")
        at = place.rstrip("`").removeprefix("$.") or None
        raise InputError(path, at=at, problem=problem, remedy=remedy) from None
    except msgspec.DecodeError as error:
        raise InputError(path, problem=f"is not JSON: {error}", remedy="for another format use -f") from None
