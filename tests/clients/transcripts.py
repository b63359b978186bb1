"""Terminal sessions with kubectl, recorded with a real kube-apiserver and replayed with ours.

A transcript is text as in a terminal: comments, commands after `$`, and the output of each command; an empty line
precedes each command. Values that differ from run to run (ages, uids, versions, times) are replaced by a name in angle
brackets. Each transcript has its own namespace with the name of its file, and may use the files in `manifests`. All
transcripts share one server, so the names of their cluster-scoped objects must differ.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from clients.kubectl import Kubectl

FOLDER = Path(__file__).parent / "transcripts"
MANIFESTS = Path(__file__).parent / "manifests"

#: Patterns of values that differ between runs, and their placeholders.
_VOLATILE = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| \+0000)", "<time>"),
        (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000", "<time>"),
        (r'(?<=resourceVersion: ")\d+|(?<="resourceVersion": ")\d+|(?<=Resource Version:  )  \d+', "<version>"),
        (r"\b\d+(?:m\d+)?s(?: \(x\d+ over \d+(?:m\d+)?s\))?(?=\s|$)", "<age>"),
        (r"/[^\s]*/(LIVE|MERGED)-\d+", r"<\1>"),
        (r"https://127\.0\.0\.1:\d+", "<server>"),
        (r"\b10\.(?:0|96)\.\d+\.\d+\b", "<ip>"),
    )
]


class Exchange(NamedTuple):
    """One command, the comments before it, and its output."""

    comments: tuple[str, ...]
    command: str
    output: str


def read(path: Path) -> list[Exchange]:
    """Return the exchanges of a transcript."""
    exchanges: list[Exchange] = []
    for part in re.split(r"\n\n(?=[#$])", path.read_text(encoding="utf-8").rstrip("\n")):
        lines = part.split("\n")
        start = next((number for number, line in enumerate(lines) if line.startswith("$ ")), len(lines))
        command = lines[start].removeprefix("$ ") if start < len(lines) else ""
        exchanges.append(Exchange(tuple(lines[:start]), command, "\n".join(lines[start + 1 :])))
    return exchanges


def write(path: Path, exchanges: list[Exchange]) -> None:
    """Write a transcript."""
    parts = []
    for exchange in exchanges:
        command = [f"$ {exchange.command}"] if exchange.command else []
        output = [exchange.output] if exchange.output else []
        parts.append("\n".join([*exchange.comments, *command, *output]))
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def replay(exchanges: list[Exchange], kubectl: Kubectl) -> Iterator[Exchange]:
    """Execute the commands, and yield the exchanges with the new output."""
    kubectl("create", "namespace", kubectl.namespace)
    for exchange in exchanges:
        output = _output(exchange.command, kubectl) if exchange.command else ""
        yield exchange._replace(output=output)


def _output(command: str, kubectl: Kubectl) -> str:
    words = shlex.split(command)
    variables = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    assert words[0] == "kubectl", f"a transcript has only kubectl commands, not {command}"
    result = kubectl.execute(*words[1:], folder=MANIFESTS, variables=variables)
    output = normalise(result.text).rstrip("\n")
    return "\n".join([*filter(None, [output]), *([f"(exit code {result.code})"] if result.code else [])])


def normalise(text: str) -> str:
    """Replace values that differ from run to run by placeholders."""
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text
