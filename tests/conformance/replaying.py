"""Replays many cases, several at once, because most of the time is spent waiting for watches."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from conformance.client import Client
from conformance.comparing import Comparer, Difference
from conformance.placeholders import Json
from conformance.running import Patience, Player

_TOPICS_WITH_MANAGED_FIELDS = ("apply", "managedfields")

OpenClient = Callable[[], AbstractContextManager[Client]]
"""Opens a client on a server; each worker has its own, and maybe a server of its own."""


class Verdict(NamedTuple):
    """The result of one case."""

    name: str
    about: str
    steps: int
    differences: list[Difference]


def case_files(folder: Path, only: Sequence[str] = ()) -> list[Path]:
    """Return the files of the cases below `folder`; `only` names topics, cases, or prefixes (`topic/c*`)."""
    return [path for path in sorted(folder.glob("*/*.json")) if not only or any(_is_named(path, name) for name in only)]


def by_api(files: Sequence[Path]) -> dict[tuple[str, ...], list[Path]]:
    """Return the files of cases by the additional API versions that they need."""
    groups: dict[tuple[str, ...], list[Path]] = {}
    for path in files:
        api = json.loads(path.read_text(encoding="utf-8")).get("api", ())
        groups.setdefault(tuple(api), []).append(path)
    return groups


def case_name(path: Path) -> str:
    """Return the name of the case in `path`: `topic/case`."""
    return f"{path.parent.name}/{path.stem}"


def _is_named(path: Path, wanted: str) -> bool:
    if wanted.endswith("*"):
        return case_name(path).startswith(wanted[:-1])
    return wanted in (path.parent.name, path.stem, case_name(path))


def count_steps(steps: Sequence[Json]) -> int:
    """Return the number of requests in `steps`, including those during watches."""
    return sum(1 + count_steps(step.get("while", [])) for step in steps if "request" in step or "watch" in step)


def judge(path: Path, player: Player) -> Verdict:
    """Replay and compare one case."""
    case = json.loads(path.read_text(encoding="utf-8"))
    comparer = Comparer(compares_managed_fields=path.parent.name in _TOPICS_WITH_MANAGED_FIELDS)
    differences = comparer.differences(case["steps"], player.play(case))
    return Verdict(case_name(path), case["about"], count_steps(case["steps"]), differences)


def replay(
    files: Sequence[Path], open_client: OpenClient, workers: int, patience: Patience | None = None
) -> list[Verdict]:
    """Replay the cases in `files` with several workers; return the verdicts in the order of `files`."""
    waiting: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for path in files:
        waiting.put(path)
    verdicts: dict[str, Verdict] = {}
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with open_client() as client, contextlib.closing(client):
                player = Player(client, patience or Patience())
                while not failures:
                    path = waiting.get_nowait()
                    verdicts[case_name(path)] = judge(path, player)
        except queue.Empty:
            return
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(min(workers, len(files)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [verdicts[case_name(path)] for path in files]
