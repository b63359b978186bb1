"""Print the lowest supported version of each library, as constraints for pip.

`make test-lowest` installs exactly these versions, to test the lower bounds of pyproject.toml. Development tools are
not included; constraints.txt pins them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

_PROJECT = Path(__file__).parent.parent / "pyproject.toml"
_BOUND = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\w.]+)")


def lowest_versions(project: Path = _PROJECT) -> Iterator[str]:
    """Yield `name==version` for each runtime requirement, including those of Parquet."""
    metadata = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    for requirement in [*metadata["dependencies"], *metadata["optional-dependencies"]["parquet"]]:
        match = _BOUND.fullmatch(requirement)
        assert match is not None, f"{requirement} has no lower bound"
        yield f"{match['name']}=={match['version']}"


if __name__ == "__main__":
    print("\n".join(lowest_versions()))
