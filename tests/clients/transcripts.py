"""Sessions at a terminal, recorded from kubectl with a real kube-apiserver, and played again.

A transcript is a text as one would copy it from a terminal: comments, commands behind `$`, and what each printed; an
empty line is before each command. What differs from run to run (ages, identities, versions, times) is written as a
name in angle brackets. Every transcript has a namespace of its own, called like its file, and may use the manifests
beside it; the commands of all transcripts meet one server, so what is not in a namespace has names of its own, too.
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

#: What is different in every run, and how it is written instead.
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
    """One command, with the comments before it, and what it printed."""

    comments: tuple[str, ...]
    command: str
    output: str


def read(path: Path) -> list[Exchange]:
    """Return the exchanges of a transcript."""
    found: list[Exchange] = []
    for part in re.split(r"\n\n(?=[#$])", path.read_text(encoding="utf-8").rstrip("\n")):
        lines = part.split("\n")
        start = next((number for number, line in enumerate(lines) if line.startswith("$ ")), len(lines))
        command = lines[start].removeprefix("$ ") if start < len(lines) else ""
        found.append(Exchange(tuple(lines[:start]), command, "\n".join(lines[start + 1 :])))
    return found


def write(path: Path, exchanges: list[Exchange]) -> None:
    """Write a transcript."""
    parts = []
    for exchange in exchanges:
        command = [f"$ {exchange.command}"] if exchange.command else []
        output = [exchange.output] if exchange.output else []
        parts.append("\n".join([*exchange.comments, *command, *output]))
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def play(exchanges: list[Exchange], kubectl: Kubectl) -> Iterator[Exchange]:
    """Yield the exchanges with what their commands print now."""
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
    assert words[0] == "kubectl", f"not a command of a transcript: {command}"
    ended = kubectl.ended(*words[1:], folder=MANIFESTS, variables=variables)
    printed = lasting(ended.text).rstrip("\n")
    return "\n".join([*filter(None, [printed]), *([f"(exit code {ended.code})"] if ended.code else [])])


def lasting(text: str) -> str:
    """Return a text without what differs from run to run."""
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return text
