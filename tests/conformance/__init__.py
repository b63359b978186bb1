"""Conformance: what a real kube-apiserver answered, asked again of another server, and the differences.

A *case* is a file: requests with the answers that were recorded. `placeholders` fills in what only the earlier answers
know, `client` speaks HTTP, `running` plays a case, `comparing` tells how two sequences of answers differ, and
`replaying` does all that for many cases at once. docs/reference/conformance.md describes the format and the rules.
"""

from pathlib import Path

CASES = Path(__file__).parent / "cases"
"""What kube-apiserver v1.34.4 answered: `TOPIC/CASE.json`."""
