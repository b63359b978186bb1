"""Derive the table of printed columns from the source of Kubernetes.

    python scripts/derive_columns.py > src/batkube/api/printing/columns.json

Clients receive the names, types, formats and priorities of a Table's columns, so they must equal the real ones. They
are read from Go's module cache, to which `go mod download k8s.io/kubernetes@v1.34.4 k8s.io/kube-aggregator@v0.34.4`
adds the sources. The descriptions of the columns are not part of the table; they are read from the module cache when a
client requests them.
"""

from __future__ import annotations

import json

from batkube.schedulers.build.toolchains import module_cache
from batkube.schedulers.column_descriptions import printed_columns

VERSION = "v1.34.4"


def main() -> None:
    """Write the columns of one resource per line to standard output."""
    columns = printed_columns(module_cache() / "k8s.io", VERSION)
    lines = (f"{json.dumps(name)}: {json.dumps([one[:4] for one in listed])}" for name, listed in columns.items())
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
