"""Generate completion scripts for bash, zsh and fish from a list of commands.

All three scripts work alike. The words so far determine the command and the number of its arguments. Then they offer

* after an option with a value: its choices, or files;
* for a word that begins with a dash: options;
* after a group: its commands;
* for an argument: its choices, or files.

Files are only offered in addition to choices if both are possible.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ValueChoices:
    """The possible values of an option or argument: words, files, or either."""

    words: tuple[str, ...] = ()
    or_files: bool = False

    @property
    def has_files(self) -> bool:
        """True where a file is possible."""
        return self.or_files or not self.words


@dataclass(frozen=True, slots=True)
class OptionShape:
    """The names and the values of an option."""

    names: tuple[str, ...]
    summary: str
    #: None for a flag.
    value: ValueChoices | None = None


@dataclass(frozen=True, slots=True)
class CommandShape:
    """A command or a command group."""

    words: tuple[str, ...]
    #: The commands of a group, with their summaries.
    commands: Mapping[str, str]
    options: Sequence[OptionShape]
    #: The positional arguments; further ones are files.
    arguments: Sequence[ValueChoices] = ()

    @property
    def name(self) -> str:
        """The command as words: `workload show`."""
        return " ".join(self.words)


def _transitions(places: Sequence[CommandShape]) -> list[tuple[str, str]]:
    """Return the steps from a group to its commands: `workload/show` to `workload show`."""
    return [(f"{' '.join(place.words[:-1])}/{place.words[-1]}", place.name) for place in places if place.words]


def _values(places: Sequence[CommandShape]) -> Iterator[tuple[list[str], ValueChoices]]:
    """Yield `place option` for each option that takes a value, with its choices."""
    for place in places:
        for option in place.options:
            if option.value is not None:
                yield [f"{place.name} {name}" for name in option.names], option.value


def _arguments(places: Sequence[CommandShape]) -> Iterator[tuple[list[str], ValueChoices]]:
    """Yield `place number` for each argument that has choices, with them; the first one's number is 0."""
    for place in places:
        yield from (
            ([f"{place.name} {number}"], choices) for number, choices in enumerate(place.arguments) if choices.words
        )


def _names(place: CommandShape) -> list[str]:
    return [name for option in place.options for name in option.names]


def bash(places: Sequence[CommandShape]) -> str:
    """Return the script for bash."""
    steps = "\n".join(
        f"            {shlex.quote(step)}) place={shlex.quote(name)} count=0 ;;" for step, name in _transitions(places)
    )
    words = "\n".join(
        f"        {shlex.quote(place.name)}) options={shlex.quote(' '.join(_names(place)))}; "
        f"commands={shlex.quote(' '.join(place.commands))}; has_arguments={'1' if place.arguments else ''} ;;"
        for place in places
    )
    return f"""# Completes batkube in bash; made by `batkube completion bash`.
_batkube() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" head="" place="" word joined="" count=0 last=$COMP_CWORD
    local values="" is_value="" files="" options="" commands="" has_arguments=""
    # Bash splits words at colons and equals signs (COMP_WORDBREAKS): policy:ea is three words; the last is replaced.
    if [[ $current == : ]]; then
        head="${{COMP_WORDS[COMP_CWORD-1]}}:" current="" last=$((COMP_CWORD-1))
    elif [[ ${{COMP_WORDS[COMP_CWORD-1]}} == : ]]; then
        head="${{COMP_WORDS[COMP_CWORD-2]}}:" last=$((COMP_CWORD-2))
    elif [[ $current == = ]]; then
        current=""
    fi
    for word in "${{COMP_WORDS[@]:1:last-1}}"; do
        [[ $word == = ]] && continue
        if [[ $joined || $word == : ]]; then
            [[ $word == : ]] && joined=1 || joined=""
            continue
        fi
        # What came before was an option, and this is its value.
        if [[ $is_value ]]; then
            is_value="" values=""
            continue
        fi
        case "$place $word" in
{_bash_cases(_values(places), "            ")}
        esac
        [[ $is_value ]] && continue
        case "$place/$word" in
{steps}
            */-*) ;;
            *) count=$((count+1)) ;;
        esac
    done
    if [[ ! $is_value && $current != -* ]]; then
        case "$place $count" in
{_bash_cases(_arguments(places), "            ")}
        esac
    fi
    case "$place" in
{words}
    esac
    COMPREPLY=()
    if [[ $is_value ]]; then
        COMPREPLY=($(compgen -W "$values" -- "$head$current"))
        COMPREPLY=("${{COMPREPLY[@]#"$head"}}")
        [[ $files ]] || compopt +o bashdefault +o default
    elif [[ $current == -* || ( ! $commands && ! $has_arguments ) ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    elif [[ $commands ]]; then
        COMPREPLY=($(compgen -W "$commands" -- "$current"))
    fi
}}
complete -o bashdefault -o default -F _batkube batkube
"""


def _bash_cases(cases: Iterable[tuple[list[str], ValueChoices]], indent: str) -> str:
    return "\n".join(
        f"{indent}{'|'.join(map(shlex.quote, keys))}) values={shlex.quote(' '.join(choices.words))}; is_value=1; "
        f"files={'1' if choices.has_files else ''} ;;"
        for keys, choices in cases
    )


def zsh(places: Sequence[CommandShape]) -> str:
    """Return the script for zsh."""
    steps = "\n".join(
        f"            ({shlex.quote(step)}) place={shlex.quote(name)} count=0 ;;" for step, name in _transitions(places)
    )
    words = "\n".join(
        f"        ({shlex.quote(place.name)})\n            options=({_zsh_options(place)})\n"
        f"            commands=({' '.join(_zsh_word(*pair) for pair in place.commands.items())})\n"
        f"            has_arguments={'1' if place.arguments else ''} ;;"
        for place in places
    )
    return f"""#compdef batkube
# Completes batkube in zsh; made by `batkube completion zsh`.
_batkube() {{
    local place="" word has_arguments="" is_value="" files="" count=0
    local -a options commands values
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        # What came before was an option, and this is its value.
        if [[ -n $is_value ]]; then
            is_value="" values=()
            continue
        fi
        case "$place $word" in
{_zsh_cases(_values(places))}
        esac
        [[ -n $is_value ]] && continue
        case "$place/$word" in
{steps}
            (*/-*) ;;
            (*) count=$((count+1)) ;;
        esac
    done
    if [[ -z $is_value && $PREFIX != -* ]]; then
        case "$place $count" in
{_zsh_cases(_arguments(places))}
        esac
    fi
    if [[ -n $is_value ]]; then
        (( $#values )) && compadd -a values
        [[ -n $files ]] && _files
        return
    fi
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


def _zsh_cases(cases: Iterable[tuple[list[str], ValueChoices]]) -> str:
    return "\n".join(
        f"            ({'|'.join(map(shlex.quote, keys))}) values=({' '.join(map(shlex.quote, choices.words))}) "
        f"is_value=1 files={'1' if choices.has_files else ''} ;;"
        for keys, choices in cases
    )


def _zsh_options(place: CommandShape) -> str:
    return " ".join(_zsh_word(name, option.summary) for option in place.options for name in option.names)


def _zsh_word(name: str, summary: str) -> str:
    return shlex.quote(f"{name}:{summary}".replace("\n", " "))


def fish(places: Sequence[CommandShape]) -> str:
    """Return the script for fish."""
    steps = "\n".join(
        f"            case {shlex.quote(step)}\n                set place {shlex.quote(name)}; set count 0"
        for step, name in _transitions(places)
    )
    valued = " ".join(_fish_quote(key) for keys, _ in _values(places) for key in keys)
    lines = "\n".join(line for place in places for line in _fish_lines(place))
    return f"""# Completes batkube in fish; made by `batkube completion fish`.
# Succeeds if the words so far are the command and, with a second argument, that many of its arguments.
function __batkube_at
    set -l place ''
    set -l count 0
    set -l is_value ''
    for word in (commandline -opc)[2..-1]
        if test -n "$is_value"
            set is_value ''
            continue
        end
        if contains -- "$place $word" {valued}
            set is_value 1
            continue
        end
        switch "$place/$word"
{steps}
            case '*/-*'
            case '*'
                set count (math $count + 1)
        end
    end
    test "$place" = "$argv[1]"; and begin
        test (count $argv) -eq 1; or test $count = "$argv[2]"
    end
end
{lines}
"""


def _fish_lines(place: CommandShape) -> Iterator[str]:
    name = _fish_quote(place.name)
    here = f"complete -c batkube -n {_fish_quote(f'__batkube_at {name}')}"
    for command, summary in place.commands.items():
        yield f"{here} -f -a {_fish_quote(command)} -d {_fish_quote(summary)}"
    if not place.commands and not place.arguments:
        yield f"{here} -f"
    for number, choices in enumerate(place.arguments):
        if choices.words:
            at_argument = f"complete -c batkube -n {_fish_quote(f'__batkube_at {name} {number}')}"
            yield f"{at_argument} {_fish_value(choices, '-f')}"
    for option in place.options:
        kinds = " ".join(
            f"-l {name.removeprefix('--')}" if name.startswith("--") else f"-s {name.removeprefix('-')}"
            for name in option.names
        )
        value = "" if option.value is None else f" {_fish_value(option.value, '-x')}"
        yield f"{here} {kinds}{value} -d {_fish_quote(option.summary)}"


def _fish_value(choices: ValueChoices, no_files: str) -> str:
    words = f" -a {_fish_quote(' '.join(choices.words))}" if choices.words else ""
    return f"{'-r' if choices.has_files else no_files}{words}"


def _fish_quote(text: str) -> str:
    """Quote a text as one word of fish, where backslash escapes backslashes and quotes."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS: dict[str, Callable[[Sequence[CommandShape]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
