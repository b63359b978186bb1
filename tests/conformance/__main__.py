"""The command: `python -m conformance replay URL` (with `test_only` on the Python path)."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance import CASES
from conformance.client import Client
from conformance.placeholders import Json
from conformance.replaying import Verdict, case_files, case_name, count_steps, replay

_SHOWN_CHARACTERS = 300


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0: no difference, 1: differences, 2: nothing to do."""
    options = _parser().parse_args(arguments)
    files = case_files(options.cases, options.only)
    if not files:
        print(f"there is no such case below {options.cases}", file=sys.stderr)
        return 2
    if options.command == "list":
        for path in files:
            case = json.loads(path.read_text(encoding="utf-8"))
            print(f"{case_name(path)} ({count_steps(case['steps'])} steps): {case['about']}")
        return 0

    @contextlib.contextmanager
    def opened() -> Iterator[Client]:
        yield Client(options.url, options.token, options.user_token)

    verdicts = replay(files, opened, options.workers)
    print_verdicts(verdicts, options.max)
    return 1 if any(verdict.differences for verdict in verdicts) else 0


def print_verdicts(verdicts: Sequence[Verdict], most: int) -> None:
    """Print the differences, at most `most` of a case, and how many cases of each topic agree."""
    agreeing: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    for verdict in verdicts:
        topic = verdict.name.partition("/")[0]
        cases[topic] += 1
        agreeing[topic] += not verdict.differences
        if verdict.differences:
            print(f"DIFF {verdict.name}: {len(verdict.differences)} differences -- {verdict.about}")
        for difference in verdict.differences[:most]:
            print(f"   {difference.path}")
            print(f"      recorded: {_short(difference.recorded)}\n      got:      {_short(difference.got)}")
    for topic in sorted(cases):
        print(f"{topic:<16} {agreeing[topic]} of {cases[topic]}")
    print(f"{agreeing.total()} of {cases.total()} cases agree")


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("replay", "replay cases and report the differences"), ("list", "list the cases")):
        command = commands.add_parser(name, help=about)
        command.add_argument("--cases", type=Path, default=CASES, metavar="DIR", help="folder of TOPIC/CASE.json")
        command.add_argument("--only", action="append", default=[], metavar="TOPIC[/CASE]", help="may be repeated")
        if name == "replay":
            command.add_argument("url", help="where the server listens, such as http://127.0.0.1:8080")
            command.add_argument("--token", default="admin-token", help="token of an administrator")
            command.add_argument("--user-token", default="user-token", help="token of a user without rights")
            command.add_argument("--workers", type=int, default=1, help="cases replayed at once")
            command.add_argument("--max", type=int, default=5, help="differences shown of a case")
    return parser


if __name__ == "__main__":
    sys.exit(main())
