"""Executes the steps of a case one after the other, and returns the answers."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import NamedTuple

from conformance.client import Client, is_plain_bookmark
from conformance.placeholders import Json, Unresolved, lookup, resolved
from conformance.webhook import ScriptedHook

_POLL_SECONDS = 0.1
_START_SECONDS = 10.0
#: How long to wait for the server to end a watch after its timeout.
_END_SECONDS = 30.0


class Patience(NamedTuple):
    """How long a player waits; a recorder has no expected answers, so it waits longer than a replay."""

    #: A watch that has received all its events ends after this long without another one.
    quiet_s: float = 0.15
    #: How long to wait for missing events.
    events_s: float = 4.0
    #: How long a request with `until` is repeated.
    until_s: float = 15.0
    #: The pause between the headers of a watch and the changes that it should report.
    settle_s: float = 0.03
    #: Whether steps with `await_caches` wait; Batkube's server has no such caches.
    awaits_caches: bool = False


RECORDING = Patience(quiet_s=0.6, events_s=8.0, settle_s=0.1, awaits_caches=True)


def fits(answer: Mapping[str, Json], until: Mapping[str, Json]) -> bool:
    """Return whether `answer` meets the condition `until` of a step."""
    for path, wanted in until.items():
        if path == "contains":
            if wanted not in json.dumps(answer.get("body")):
                return False
        elif path == "lacks":
            if wanted in json.dumps(answer.get("body")):
                return False
        else:
            try:
                if lookup(answer, path) != wanted:
                    return False
            except Unresolved:
                return False
    return True


class Player:
    """Executes cases on one server."""

    def __init__(self, client: Client, patience: Patience) -> None:
        self._client = client
        self._patience = patience
        #: Whether a wait of this case has timed out; its other steps then do not wait.
        self._gave_up = False
        #: The webhook of this case, if it has one.
        self._hook: ScriptedHook | None = None

    def play(self, case: Mapping[str, Json]) -> list[Json]:
        """Return the result of each step; the case is always cleaned up afterwards."""
        if "webhook" not in case:
            return self._played(case)
        self._hook = hook = ScriptedHook(case["webhook"])
        with hook.listening():
            words = {
                "${webhook}": f"https://127.0.0.1:{hook.port}",
                "${webhook-address}": f"127.0.0.1:{hook.port}",
                "${webhook-authority}": hook.authority,
                "${nobody}": "https://127.0.0.1:1",
            }
            steps = {part: _reworded(case.get(part, []), words) for part in ("steps", "cleanup")}
            results: list[Json] = _reworded(self._played(steps), {text: word for word, text in words.items()})
            return results

    def _played(self, case: Mapping[str, Json]) -> list[Json]:
        results: list[Json] = []
        self._gave_up = False
        try:
            for step in case["steps"]:
                self._do(step, results, results)
        finally:
            for step in case.get("cleanup", []):
                self._do(step, results, [])
        return results

    def _do(self, step: Mapping[str, Json], results: list[Json], into: list[Json]) -> None:
        try:
            if "sleep" in step:
                time.sleep(step["sleep"])
                into.append({})
            elif "await_caches" in step:
                time.sleep(step["await_caches"] * self._patience.awaits_caches)
                into.append({})
            elif "asked" in step:
                assert self._hook is not None, "a case that looks at what its webhook was asked has none"
                body = self._hook.asked_at(step["asked"])
                into.append({"status": 200, "content_type": "application/json", "body": body})
            elif "watch" in step:
                self._watch(step, results, into)
            else:
                into.append(self._request(step, resolved(step["request"], results)))
        except Unresolved as path:
            answer = {"status": -1, "content_type": "", "body": f"unresolved placeholder {path}"}
            into.append({**answer, "events": [], "while": []} if "watch" in step else answer)

    def _request(self, step: Mapping[str, Json], request: Mapping[str, Json]) -> Json:
        limit_s = min(step.get("timeout", self._patience.until_s), self._patience.until_s)
        end = time.monotonic() + (0.5 if self._gave_up else limit_s)
        while True:
            answer = self._client.request(request)
            if "until" not in step or fits(answer, step["until"]):
                return answer
            if time.monotonic() > end:
                self._gave_up = True
                return answer
            time.sleep(_POLL_SECONDS)

    def _watch(self, step: Mapping[str, Json], results: list[Json], into: list[Json]) -> None:
        request = resolved(step["watch"], results)
        watching = self._client.watch(request)
        watching.await_start(_START_SECONDS)
        time.sleep(self._patience.settle_s)
        watching.await_events(step.get("initial", 0), 0.02 if step.get("initial") else 0.0, self._patience.events_s)
        result: dict[str, Json] = {"while": []}
        into.append(result)
        for inner in step.get("while", []):
            self._do(inner, results, result["while"])
        if step.get("until_closed"):
            watching.await_end(_server_timeout_s(request) + _END_SECONDS)
            result["closed"] = watching.is_closed
        else:
            count = sum(not is_plain_bookmark(event) for event in step.get("events", []))
            watching.await_events(count, self._patience.quiet_s, self._patience.events_s)
        result["events"] = list(watching.events)
        watching.stop()
        result.update(watching.answer)


def _reworded(value: Json, words: Mapping[str, str]) -> Json:
    """Return a value with words replaced in all its texts."""
    text = json.dumps(value)
    for word, other in words.items():
        text = text.replace(word, other)
    return json.loads(text)


def _server_timeout_s(request: Mapping[str, Json]) -> float:
    """Return after how long the server should end the watch; some cases use invalid values."""
    try:
        return float((request.get("query") or {}).get("timeoutSeconds", 2))
    except ValueError:
        return 2.0
