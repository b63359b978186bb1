"""YAML files that people write: scenarios, experiments, latencies, catalogues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from batkube.kernel.errors import InputError


class _Twice(yaml.MarkedYAMLError):
    """A mapping has a key twice; YAML forbids it, and its library would silently keep the last."""


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401 - as the library has it
        node = super().compose_mapping_node(anchor)
        seen: dict[tuple[str, str], None] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if (key.tag, key.value) in seen:
                raise _Twice(problem=f"the key {key.value!r} is given twice", problem_mark=key.start_mark)
            seen[key.tag, key.value] = None
        return node


def read_yaml(path: Path) -> object:
    """Return what the one document of a YAML file holds. No mapping in it may have a key twice."""
    try:
        content: object = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}", remedy="check the path") from error
    except _Twice as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise InputError(path, at=f"line {line}", problem=str(error.problem), remedy="keep one of them") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(path, problem=f"is not YAML: {' '.join(str(error).split())}") from error
    return content
