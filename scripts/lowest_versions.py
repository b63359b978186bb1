"""Prints the lowest version of each library that users may have, as constraints for pip.

`make test-lowest` installs exactly these, so that the lower bounds of pyproject.toml are known to work. The tools of
development are not among them: those are locked by constraints.txt.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

_PROJECT = Path(__file__).parent.parent / "pyproject.toml"
_BOUND = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\w.]+)")


def lowest_versions(project: Path = _PROJECT) -> Iterator[str]:
    """Yield `name==version` for each requirement of running, Parquet included."""
    described = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    for requirement in [*described["dependencies"], *described["optional-dependencies"]["parquet"]]:
        match = _BOUND.fullmatch(requirement)
        assert match is not None, f"{requirement} has no lower bound"
        yield f"{match['name']}=={match['version']}"


if __name__ == "__main__":
    print("\n".join(lowest_versions()))
