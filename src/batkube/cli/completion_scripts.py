"""Scripts that complete a command line, for bash, zsh and fish, from a list of its commands.

All three do the same: the words so far lead to a command; after an option that takes a value come its choices, or
files; a word that begins with a dash becomes an option; after a group come its commands; anything else is a file.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionShape:
    """An option, as far as it can be completed."""

    names: tuple[str, ...]
    summary: str
    takes_value: bool
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """Where in the command line one can be: behind a command, which may be a group of others."""

    words: tuple[str, ...]
    #: The commands of a group by name, with a summary each.
    commands: Mapping[str, str]
    options: Sequence[OptionShape]
    has_arguments: bool

    @property
    def name(self) -> str:
        """The words that lead here: `workload show`."""
        return " ".join(self.words)


def _steps(places: Sequence[CommandPlace]) -> list[tuple[str, str]]:
    """Return how one gets from place to place: `workload/show` to `workload show`."""
    return [(f"{' '.join(place.words[:-1])}/{place.words[-1]}", place.name) for place in places if place.words]


def _values(places: Sequence[CommandPlace]) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """Yield `place option` for each option that takes a value, with its choices."""
    for place in places:
        for option in place.options:
            if option.takes_value:
                yield [f"{place.name} {name}" for name in option.names], option.choices


def _names(place: CommandPlace) -> list[str]:
    return [name for option in place.options for name in option.names]


def bash(places: Sequence[CommandPlace]) -> str:
    """Return the script for bash."""
    steps = "\n".join(f"            {shlex.quote(step)}) place={shlex.quote(name)} ;;" for step, name in _steps(places))
    values = "\n".join(
        f"        {'|'.join(map(shlex.quote, keys))}) values={shlex.quote(' '.join(choices))}; is_value=1 ;;"
        for keys, choices in _values(places)
    )
    words = "\n".join(
        f"        {shlex.quote(place.name)}) options={shlex.quote(' '.join(_names(place)))}; "
        f"commands={shlex.quote(' '.join(place.commands))}; has_arguments={'1' if place.has_arguments else ''} ;;"
        for place in places
    )
    return f"""# Completes batkube in bash; made by `batkube completion bash`.
_batkube() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" head="" place="" word
    local values="" is_value="" options="" commands="" has_arguments=""
    # Bash parts words at colons: policy:ea is three of them, and only the last one is replaced.
    if [[ $current == : ]]; then
        head="$previous:" current="" previous="${{COMP_WORDS[COMP_CWORD-2]}}"
    elif [[ $previous == : ]]; then
        head="${{COMP_WORDS[COMP_CWORD-2]}}:" previous="${{COMP_WORDS[COMP_CWORD-3]}}"
    fi
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$place/$word" in
{steps}
        esac
    done
    case "$place $previous" in
{values}
    esac
    case "$place" in
{words}
    esac
    COMPREPLY=()
    if [[ $is_value ]]; then
        COMPREPLY=($(compgen -W "$values" -- "$head$current"))
        COMPREPLY=("${{COMPREPLY[@]#"$head"}}")
    elif [[ $current == -* || ( ! $commands && ! $has_arguments ) ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    elif [[ $commands ]]; then
        COMPREPLY=($(compgen -W "$commands" -- "$current"))
    fi
}}
complete -o bashdefault -o default -F _batkube batkube
"""


def zsh(places: Sequence[CommandPlace]) -> str:
    """Return the script for zsh."""
    steps = "\n".join(
        f"            ({shlex.quote(step)}) place={shlex.quote(name)} ;;" for step, name in _steps(places)
    )
    values = "\n".join(
        f"        ({'|'.join(map(shlex.quote, keys))}) {_zsh_values(choices)}; return ;;"
        for keys, choices in _values(places)
    )
    words = "\n".join(
        f"        ({shlex.quote(place.name)})\n            options=({_zsh_options(place)})\n"
        f"            commands=({' '.join(_zsh_word(*pair) for pair in place.commands.items())})\n"
        f"            has_arguments={'1' if place.has_arguments else ''} ;;"
        for place in places
    )
    return f"""#compdef batkube
# Completes batkube in zsh; made by `batkube completion zsh`.
_batkube() {{
    local place="" word has_arguments=""
    local -a options commands
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$place/$word" in
{steps}
        esac
    done
    case "$place ${{words[CURRENT-1]}}" in
{values}
    esac
    case "$place" in
{words}
    esac
    if [[ $PREFIX == -* || ( $#commands -eq 0 && -z $has_arguments ) ]]; then
        _describe -o option options
    elif (( $#commands )); then
        _describe command commands
    else
        _files
    fi
}}
if [[ $funcstack[1] == _batkube ]]; then
    _batkube "$@"
else
    compdef _batkube batkube
fi
"""


def _zsh_values(choices: tuple[str, ...]) -> str:
    # Schedulers, platforms and the like may be files as well.
    return f"compadd -- {' '.join(map(shlex.quote, choices))}; _files" if choices else "_files"


def _zsh_options(place: CommandPlace) -> str:
    return " ".join(_zsh_word(name, option.summary) for option in place.options for name in option.names)


def _zsh_word(name: str, summary: str) -> str:
    return shlex.quote(f"{name}:{summary}".replace("\n", " "))


def fish(places: Sequence[CommandPlace]) -> str:
    """Return the script for fish."""
    steps = "\n".join(
        f"            case {shlex.quote(step)}\n                set place {shlex.quote(name)}"
        for step, name in _steps(places)
    )
    lines = "\n".join(line for place in places for line in _fish_lines(place))
    return f"""# Completes batkube in fish; made by `batkube completion fish`.
function __batkube_at
    set -l place ''
    for word in (commandline -opc)[2..-1]
        switch "$place/$word"
{steps}
        end
    end
    test "$place" = "$argv[1]"
end
{lines}
"""


def _fish_lines(place: CommandPlace) -> Iterator[str]:
    here = f"complete -c batkube -n {_fish_quote(f'__batkube_at {_fish_quote(place.name)}')}"
    for name, summary in place.commands.items():
        yield f"{here} -f -a {_fish_quote(name)} -d {_fish_quote(summary)}"
    for option in place.options:
        kinds = " ".join(
            f"-l {name.removeprefix('--')}" if name.startswith("--") else f"-s {name.removeprefix('-')}"
            for name in option.names
        )
        value = " -r" if option.takes_value else ""
        choices = f" -a {_fish_quote(' '.join(option.choices))}" if option.choices else ""
        yield f"{here} {kinds}{value}{choices} -d {_fish_quote(option.summary)}"


def _fish_quote(text: str) -> str:
    """Return a text as one word of fish, in which a quoted backslash or quote has a backslash before it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS: dict[str, Callable[[Sequence[CommandPlace]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
