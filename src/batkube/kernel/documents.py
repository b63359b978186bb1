"""YAML files that people write: scenarios, latencies."""

from __future__ import annotations

from pathlib import Path

import yaml

from batkube.kernel.errors import InputError


def read_yaml(path: Path) -> object:
    """Return what the one document of a YAML file holds."""
    try:
        content: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}", remedy="check the path") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(path, problem=f"is not YAML: {' '.join(str(error).split())}") from error
    return content
