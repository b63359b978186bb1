"""Conformance: replays recorded requests, and compares the answers with those of a real kube-apiserver.

A *case* is a file: requests with the answers that were recorded. `placeholders` fills in values from earlier answers,
`client` sends the requests, `running` executes a case, `comparing` finds the differences between two sequences of
answers, and `replaying` does all of this for many cases at once. docs/reference/conformance.md describes the format and
the rules.
"""

from pathlib import Path

CASES = Path(__file__).parent / "cases"
"""The answers of kube-apiserver v1.34.4: `TOPIC/CASE.json`."""
