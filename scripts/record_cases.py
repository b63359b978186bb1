"""Record conformance cases: run case scripts against a real kube-apiserver and write its answers.

    python scripts/record_cases.py [--only TOPIC[/CASE]]... [--url URL]

Without --url, etcd and kube-apiserver are built (minutes, the first time), started, and stopped again.
Cases that need versions which are off by default (`api`) use a server of their own.
docs/reference/conformance.md explains how to write a script.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from conformance.client import Client  # noqa: E402
from conformance.real_server import real_server  # noqa: E402
from conformance.running import RECORDING, Player  # noqa: E402
from conformance.scripting import expanded  # noqa: E402

FOLDER = TESTS / "conformance"


def with_answers(case: dict[str, Any], results: Sequence[Any]) -> dict[str, Any]:
    """Return `case` with the answers."""
    return {**case, "steps": [_step(step, result) for step, result in zip(case["steps"], results, strict=True)]}


def _step(step: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    if "request" in step or "asked" in step:
        return {**step, "response": result}
    if "watch" in step:
        inner = [_step(each, got) for each, got in zip(step["while"], result["while"], strict=True)]
        return {**step, **result, "while": inner}
    return step


def case_text(case: dict[str, Any]) -> str:
    """Return the content of a case's file, with one step per line, so that diffs are readable."""
    head = {key: value for key, value in case.items() if key not in ("steps", "cleanup")}
    lines = [json.dumps(head, indent=1, ensure_ascii=False)[:-2]]
    for key in ("steps", "cleanup"):
        rows = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in case[key])
        lines.append(f' "{key}": [\n{rows}\n ]' if rows else f' "{key}": []')
    return ",\n".join(lines) + "\n}\n"


@contextlib.contextmanager
def server_at(url: str, api: Sequence[str]) -> Iterator[str]:
    """Yield the URL of a server: `url`, or that of a new server, which serves `api` beside the usual versions."""
    if url:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="record-cases-") as name, real_server(Path(name), api) as server:
        yield server.url


def main() -> None:
    """Record the selected scripts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="TOPIC[/CASE]")
    parser.add_argument("--url", default="", help="a running kube-apiserver")
    options = parser.parse_args()
    by_api: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for path in sorted((FOLDER / "scripts").glob("*/*.yaml")):
        if not options.only or {path.parent.name, f"{path.parent.name}/{path.stem}"} & set(options.only):
            case = expanded(path)
            by_api.setdefault(tuple(case.get("api", ())), []).append(case)
    for api, cases in by_api.items():
        with server_at(options.url, api) as url:
            record(cases, Player(Client(url), RECORDING))


def record(cases: Sequence[dict[str, Any]], player: Player) -> None:
    """Run cases and write their files."""
    for case in cases:
        file = FOLDER / "cases" / case["topic"] / f"{case['case']}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(case_text(with_answers(case, player.play(case))), encoding="utf-8")
        print(f"{case['topic']}/{case['case']}", flush=True)


if __name__ == "__main__":
    main()
