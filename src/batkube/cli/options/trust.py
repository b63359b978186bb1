"""The option --trust: whether to execute code named in files from elsewhere, without asking."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from batkube.simulation.preparation.named_code import Confirmation, NamedCode, foreign_code, reject_foreign_code

Trust = Annotated[bool, typer.Option("--trust", help="Execute code named in files from elsewhere, without asking.")]


def confirmation(trust: bool, *, lists_all: bool = False) -> Confirmation:
    """Return a function that lists code and asks on a terminal whether to execute it; `trust` answers yes.

    Code that trusted files name is listed only if `lists_all`, and never needs a confirmation.
    """

    def confirm(code: Sequence[NamedCode]) -> None:
        foreign = foreign_code(code)
        must_ask = bool(foreign) and not trust
        if must_ask and not (sys.stdin.isatty() and sys.stderr.isatty()):
            reject_foreign_code(foreign)
        for one in code if lists_all else foreign:
            typer.echo(f"executes code: {one}", err=True)
        if must_ask:
            typer.confirm("execute it?", err=True, abort=True)

    return confirm
