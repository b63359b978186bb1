"""`batkube completion`: generate a shell's completion script from the command line itself.

The script contains all commands, options and choices of this version. The shell does not start `batkube` to complete a
word, so completion is immediate.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args, get_type_hints

import typer
import typer.main

from batkube.cli.output.completion_scripts import SCRIPTS, CommandShape, OptionShape, ValueChoices

#: The option whose value is a name or the path of a program.
_NAME_OR_FILE = "--scheduler"


class Shell(enum.StrEnum):
    """The shell of a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell.", metavar="bash|zsh|fish")],
) -> None:
    """Print a completion script for a shell.

    \b
    batkube completion bash > ~/.local/share/bash-completion/completions/batkube
    batkube completion zsh > ~/.zfunc/_batkube      (with `fpath+=~/.zfunc` before compinit in ~/.zshrc)
    batkube completion fish > ~/.config/fish/completions/batkube.fish
    """
    from batkube.cli.app import build_app

    typer.echo(SCRIPTS[shell.value](list(command_shapes(typer.main.get_command(build_app())))), nl=False)


def command_shapes(command: Any, words: tuple[str, ...] = ()) -> Iterator[CommandShape]:  # noqa: ANN401 - typer's classes are private
    """Yield every command of a command line, groups before their commands."""
    subcommands: Mapping[str, Any] = getattr(command, "commands", {})
    parameters = [parameter for parameter in command.params if not parameter.hidden]
    hints = get_type_hints(inspect.unwrap(command.callback)) if command.callback is not None else {}
    options = [_option(option, hints) for option in parameters if option.opts[0].startswith("-")]
    yield CommandShape(
        words=words,
        commands={name: subcommand.get_short_help_str(200) for name, subcommand in subcommands.items()},
        options=[*options, OptionShape(("-h", "--help"), "Show this message and exit.")],
        arguments=[_argument(argument, hints) for argument in parameters if not argument.opts[0].startswith("-")],
    )
    for name, subcommand in subcommands.items():
        yield from command_shapes(subcommand, (*words, name))


def _option(parameter: Any, hints: Mapping[str, Any]) -> OptionShape:  # noqa: ANN401
    names = (*parameter.opts, *parameter.secondary_opts)
    summary = (parameter.help or "").partition("\n")[0]
    is_flag = bool(parameter.is_flag or parameter.count)
    return OptionShape(names, summary, None if is_flag else _choices(names[0], hints.get(parameter.name)))


def _argument(parameter: Any, hints: Mapping[str, Any]) -> ValueChoices:  # noqa: ANN401
    metavar = str(parameter.metavar or "")
    return ValueChoices(tuple(metavar.split("|"))) if "|" in metavar else _choices(metavar, hints.get(parameter.name))


def _choices(name: str, hint: object) -> ValueChoices:
    """Return the choices of an option or argument: the members of its enum, or suggested values."""
    for kind in (hint, *get_args(hint)):
        if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
            return ValueChoices(tuple(kind))
    return ValueChoices(tuple(_known_values().get(name, ())), or_files=name == _NAME_OR_FILE)


@functools.cache
def _known_values() -> dict[str, list[str]]:
    from batkube.cluster.jobs.submission_forms import SubmissionForm
    from batkube.policies.registry.catalogue import policy_names
    from batkube.scenarios import scenario
    from batkube.schedulers.catalogue import read_catalogue
    from batkube.timing.time_rules import TimeMode

    programs = [name for name, entry in read_catalogue().items() if entry.virtual]
    return {
        "NAME[@VERSION]": [*read_catalogue()],
        _NAME_OR_FILE: [*(f"policy:{name}" for name, _ in policy_names()), *programs],
        "--time": [*TimeMode],
        "--resources": [*scenario.Resources],
        "--on-eviction": [*scenario.OnEviction],
        "--on-failure": [*scenario.OnFailure],
        "--on-deadlock": [*scenario.OnDeadlock],
        "--submit-as": [*SubmissionForm],
        "--controllers": [scenario.OUR_CONTROLLERS, scenario.NO_CONTROLLERS, scenario.CONTROLLER_MANAGER],
        "--outputs": ["all", "none", *scenario.OPTIONAL_OUTPUTS],
    }
