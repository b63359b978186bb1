"""What Kubernetes' own OpenAPI document says of its types and fields, in words.

The words are not ours, so none of them are kept in this repository. Whoever has built a program of Kubernetes has its
module, with that document in it: it is read there when somebody first asks, and what is read is kept in the cache.
Where there is no module, types and fields are told without words.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from batkube.kernel.errors import InputError, RunFailed
from batkube.kernel.files.replacement import write_atomically
from batkube.schedulers.build.cache_permissions import make_private_folder
from batkube.schedulers.build.toolchains import module_cache

Descriptions = dict[str, dict[str, str]]
"""The words of each field by the name of its type's definition; "" stands for the type itself."""

_DOCUMENT = "api/openapi-spec/swagger.json"


def read_field_descriptions(version: str, cache: Path) -> Descriptions:
    """Return the words of a version of Kubernetes (`v1.34.4`); none where its module is not on this machine."""

    def read() -> Descriptions:
        document = module_cache() / f"k8s.io/kubernetes@{version}" / _DOCUMENT
        return _descriptions(msgspec.json.decode(document.read_bytes()))

    return cached_descriptions(cache / "descriptions" / f"{version}.json", read)


def cached_descriptions(kept: Path, read: Callable[[], Descriptions]) -> Descriptions:
    """Return what the file `kept` holds, or what is read from modules and put there; nothing where there are none."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(kept.read_bytes(), type=Descriptions)
    try:
        words = read()
    except (OSError, RunFailed):
        return {}
    # Where nothing can be kept, they are read again next time.
    with contextlib.suppress(OSError, InputError):
        make_private_folder(kept.parent)
        write_atomically(kept, msgspec.json.encode(words))
    return words


def _descriptions(document: dict[str, Any]) -> Descriptions:
    return {name: _descriptions_of_type(definition) for name, definition in document["definitions"].items()}


def _descriptions_of_type(definition: dict[str, Any]) -> dict[str, str]:
    words = {name: field.get("description", "") for name, field in definition.get("properties", {}).items()}
    return {name: text for name, text in {"": definition.get("description", ""), **words}.items() if text}
