"""Batkube's answers, compared with the recorded ones of a real kube-apiserver v1.34.4.

A difference that we accept is written down, with its reason, in `accepted_differences.json` beside the cases and in
docs/reference/api-differences.md; any other one fails.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import pytest

from conformance import CASES
from conformance.client import Client
from conformance.replaying import OpenClient, Verdict, by_api, case_files, replay
from conformance.serving import serving

ACCEPTED = CASES.parent / "accepted_differences.json"
WORKERS = 8


def own_server(api: Sequence[str]) -> OpenClient:
    """Return a client with a server of its own, since cases with cluster-wide objects would interfere."""

    @contextlib.contextmanager
    def opened() -> Iterator[Client]:
        with serving(more_versions=api) as server:
            yield Client(server.url)

    return opened


def unexpected(verdict: Verdict, accepted: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the differences of a case that are not accepted ones."""
    places = accepted.get(verdict.name, {})
    return [
        f"{verdict.name} {difference.path}: recorded {difference.recorded!r:.300}, got {difference.got!r:.300}"
        for difference in verdict.differences
        if not any(difference.path.startswith(place) for place in places)
    ]


@pytest.mark.headline
def test_the_recorded_cases_agree() -> None:
    accepted = msgspec.json.decode(ACCEPTED.read_bytes(), type=dict[str, dict[str, str]])

    groups = by_api(case_files(CASES)).items()
    verdicts = [verdict for api, files in groups for verdict in replay(files, own_server(api), WORKERS)]

    assert len(verdicts) >= 369
    differences = [line for verdict in verdicts for line in unexpected(verdict, accepted)]
    assert not differences, "\n".join(differences)
