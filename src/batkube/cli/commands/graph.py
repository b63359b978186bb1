"""`batkube graph`: query a resource graph, with the options and commands of Fluxion's resource-query."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TextIO

import typer

from batkube.cli.process.exit_codes import BAD_INPUT
from batkube.graph.accounting.pruning import DEFAULT_FILTERS
from batkube.graph.formats.r_writers import MATCH_FORMATS
from batkube.graph.formats.reader import GRAPH_FORMATS, read_bytes, read_graph
from batkube.graph.matching.matcher import TRAVERSERS, Matcher
from batkube.graph.query.session import QuerySession
from batkube.graph.query.subsystems import MATCHERS, subsystems_of
from batkube.graph.query.svg import draw_graph
from batkube.graph.traversal.match_policy import POLICY_NAMES
from batkube.kernel.errors import InputError

app = typer.Typer(
    name="graph",
    help="Query and draw a resource graph.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_Graph = Annotated[Path, typer.Option("--load-file", "-L", help="The file with the resource graph.")]
_Format = Annotated[str, typer.Option("--load-format", "-f", help=f"Its format: {', '.join(GRAPH_FORMATS)}.")]
_Allowlist = Annotated[
    str, typer.Option("--load-allowlist", "-W", help="The types to read from an hwloc file: node,socket,core,gpu.")
]
_Matcher = Annotated[str, typer.Option("--match-subsystems", "-S", help=f"Subsystems: {', '.join(MATCHERS)}.")]
_Policy = Annotated[
    str, typer.Option("--match-policy", "-P", help=f"{', '.join(POLICY_NAMES)}, or `policy=low node_centric=true …`.")
]
_MatchFormat = Annotated[
    str, typer.Option("--match-format", "-F", help=f"The output format of matches: {', '.join(MATCH_FORMATS)}.")
]
_Traverser = Annotated[str, typer.Option("--traverser-policy", "-T", help=f"The traversal: {', '.join(TRAVERSERS)}.")]
_Filters = Annotated[
    list[str], typer.Option("--prune-filters", "-p", help="Where subtree totals are kept, as in ALL:core,rack:node.")
]
_Output = Annotated[
    Path | None, typer.Option("--test-output", "-t", help="The output file; standard output by default.")
]


@app.command()
def query(
    load_file: _Graph,
    load_format: _Format = "grug",
    load_allowlist: _Allowlist = "",
    match_subsystems: _Matcher = "CA",
    match_policy: _Policy = "first",
    match_format: _MatchFormat = "simple",
    traverser_policy: _Traverser = "simple",
    prune_filters: _Filters = [],  # noqa: B006 - typer copies it
    test_output: _Output = None,
    reserve_vtx_vec: Annotated[int, typer.Option("--reserve-vtx-vec", "-r", help="Has no effect here.")] = 0,
    disable_prompt: Annotated[
        bool, typer.Option("--disable-prompt", "-d", help="Has no effect here: there is no prompt.")
    ] = False,
) -> None:
    """Execute the commands on standard input, as resource-query does; `help` lists them."""
    _check_choice("--match-format", match_format, tuple(MATCH_FORMATS))
    _check_choice("--traverser-policy", traverser_policy, TRAVERSERS)
    allowed = tuple(filter(None, (word.strip() for word in load_allowlist.split(","))))
    if allowed and load_format != "hwloc":
        typer.echo("warning: -W/--load-allowlist is ignored: it applies only to hwloc files", err=True)
    matcher = Matcher(
        read_graph(load_file, load_format, allowed),
        match_policy,
        filters=",".join(filter(str.strip, prune_filters)) or DEFAULT_FILTERS,
        subsystems=subsystems_of(match_subsystems),
        traverser=traverser_policy,
        writer=MATCH_FORMATS[match_format](),
    )
    with _open_output(test_output, "-t") as output:
        session = QuerySession(matcher, output, sys.stderr, sys.stdout)
        session.run(sys.stdin)
    if session.had_bad_input:
        raise typer.Exit(BAD_INPUT)


@app.command()
def show(
    load_file: _Graph,
    output: Annotated[Path, typer.Option("--output", "-o", help="The SVG file to write.")],
    load_format: _Format = "grug",
    match_subsystems: _Matcher = "CA",
    match_policy: _Policy = "first",
    commands: Annotated[
        Path | None, typer.Option("--commands", help="A file with commands, as for `query`, to execute first.")
    ] = None,
    below: Annotated[
        str, typer.Option("--below", help="Draw only the subtree of this path, such as /cluster0/rack1.")
    ] = "",
) -> None:
    """Draw a graph. Vertices that are allocated by the commands have the colour of their job."""
    matcher = Matcher(read_graph(load_file, load_format), match_policy, subsystems=subsystems_of(match_subsystems))
    if commands is not None:
        script = read_bytes(commands).decode("utf-8", "replace")
        session = QuerySession(matcher, io.StringIO(), sys.stderr, io.StringIO())
        session.run(script.splitlines())
        if session.had_bad_input:
            raise typer.Exit(BAD_INPUT)
    drawing = draw_graph(matcher, load_file, path=below)
    with _open_output(output, "-o") as file:
        file.write(drawing)


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(option, problem=f"{value!r} is not a valid value", remedy=f"use one of {', '.join(choices)}")


@contextlib.contextmanager
def _open_output(path: Path | None, option: str) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise InputError(path, problem=f"cannot be written: {error.strerror}", remedy=f"check {option}") from error
    with file:
        yield file
