"""Random shell scripts, with supported and unsupported constructs."""

from __future__ import annotations

import random
import re

_FORMS: dict[str, list[str]] = {
    "number": ["0", "1", "2", "3", "4"],
    "name": ["X", "Y", "Z"],
    "path": ["/data/f", "/data/g", "/data/f/h"],
    "sign": ["+", "-", "*", "/", "%", "<", "=="],
    "word": [
        *(
            "<number>",
            "<number>",
            "$<name>",
            '"$<name>"',
            "${<name>}",
            "${<name>:-<number>}",
            "$((<name> <sign> $<name>))",
        ),
        *(
            "$((<number> <sign> <number>))",
            "$(( (<number> + <number>) * <number> ))",
            "$(echo <number>)",
            "`echo <number>`",
        ),
        *(
            r"$(expr <number> \* <number>)",
            "$(seq 2)",
            "$(<command>)",
            '"$(<command>; echo <number>)"',
            "'a b'",
            '"a  b"',
        ),
        *(
            "$?",
            '"x$<name>y"',
            "1$<name>",
            "a",
            '""',
            "$#",
            "$1",
            '"$@"',
            r"a\ b",
            r'"a\b"',
            "~",
            "*",
            "'$X'",
            '"\\$X"',
        ),
    ],
    "test": [
        *(
            "true",
            "false",
            ":",
            "[ <number> -lt <number> ]",
            "[ <word> -eq <word> ]",
            "[ <word> = <word> ]",
            "test -n <word>",
        ),
        *("[ -z <word> ]", "[ ! <word> != <word> ]", "[ <word> ]", "[ -f <path> ]", "test -d <path>", "[ -s <path> ]"),
        *("expr <number> > /dev/null", "(exit <number>)", "! true", "<test> && <test>", "{ <test>; }", "[[ $Z = a ]]"),
    ],
    "command": [
        *(
            "<test>",
            "<test>",
            "<test>",
            "sleep <number>",
            "sleep <number>",
            "sleep <word>",
            "sleep <number> 0.5",
            "sleep 1m",
        ),
        *(
            "<name>=<word>",
            "<name>=<word>",
            "<name>=<word> <name>=<word>",
            "<name>=<number> sleep <word>",
            "<name>=3 true",
        ),
        *("export <name>=<word>", "unset <name>", "readonly <name>", "exit <number>", "exit", "exit $?", "exit <word>"),
        *(
            "set -e",
            "set +e",
            "set -u",
            "set -eu",
            "set -- <number>",
            "shift",
            "break",
            "continue",
            "break 2",
            "return 2",
        ),
        *(
            "echo <word> > <path>",
            "echo a >> <path>",
            "> <path>",
            "touch <path>",
            "rm <path>",
            "rm -f <path>",
            "cat < <path>",
        ),
        *(
            "mkdir <path>",
            "mkdir -p <path>",
            "cat <path> 2>/dev/null",
            "echo <word> >&2",
            "echo a 2>&1",
            "printf x",
            "cd /data",
        ),
        *(
            "trap 'exit 3' TERM",
            "trap 'exit 3' EXIT",
            "env sleep 2",
            "env X=3 true",
            "command true",
            "exec sleep <number>",
        ),
        *("nohup sleep 1", "eval exit <number>", "read X", "wait", '"$@"', "$X", "! <command>", "\\\nsleep 1"),
        *("echo <word> | cat", "case $X in <number>) exit 4;; esac", "f() { return <number>; }; f", "(( X = 1 ))"),
    ],
    "script": [
        *("<command>", "<command>; <command>", "<script>; <script>", "<script>\n<script>", "<script>\n<script>"),
        *(
            "if <test>; then\n<script>\nelse <script>; fi",
            "if <test>; <test>\nthen <script>; elif <test>; then <script>\nfi",
        ),
        *(
            "<command> && <command> || <command>",
            "{ <script>; } || { <script>; }",
            "{ <script>; }",
            "( <script> )",
            "! <test>",
        ),
        *(
            "for <name> in <word> <word>; do <script>; done",
            "for <name> in <word>\ndo\n<script>\ndone",
            "# x\n<script>",
        ),
        *("i=0; while [ $i -lt 3 ]; do i=$((i + 1)); <script>; done", "while <test>; do <script>; break; done"),
        *("set -e; <script>", "set -e\n<script>\n<script>", "<name>=$(<script>)", "<name>=$(<script>) || exit 9"),
        *("cat <<EOF\n<word>\nEOF\n<script>",),
    ],
}
#: The statements to choose from at the maximum nesting depth.
_SHALLOW: dict[str, list[str]] = {
    "script": ["<command>"],
    "command": ["true", "false", "sleep <number>", "exit <number>", "<name>=<word>", "touch <path>"],
    "test": ["true", "false", "[ <number> -lt <number> ]", "[ $X = <number> ]"],
    "word": ["<number>", "$<name>", '"$<name>"', "$?", "$((<number> <sign> <number>))"],
}


def random_script(seed: int) -> str:
    """Return the random script of a seed."""
    chance = random.Random(seed)

    def made(form: str, depth: int) -> str:
        choices = _FORMS[form] if depth > 0 else _SHALLOW.get(form, _FORMS[form])
        return re.sub(r"<([a-z]+)>", lambda match: made(match[1], depth - 1), chance.choice(choices))

    return made("script", chance.randint(1, 6))
