"""Components write through their clients only."""

from __future__ import annotations

import re
from pathlib import Path

import batkube

SOURCE = Path(batkube.__file__).parent
WRITE = re.compile(r"\bstore\.(create|replace|delete|set_statuses)\(")
#: The API server; the client without one; what both share; the expiry of events, which etcd's leases do in a cluster;
#: and the copy of another cluster.
WRITERS = ("api/", "cluster/store_client.py", "cluster/decisions.py", "programs/observation/observer.py", "joining/")


def test_no_component_writes_to_the_store_past_its_client() -> None:
    modules = {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    writers = {name for name, text in modules.items() if WRITE.search(text.replace("_store.", "store."))}

    assert [name for name in sorted(writers) if not name.startswith(WRITERS)] == []
    assert {writer for writer in WRITERS if any(name.startswith(writer) for name in writers)} == set(WRITERS)
