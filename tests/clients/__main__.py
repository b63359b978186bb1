"""Records transcripts from a real kube-apiserver: `python -m clients [NAME]...` (with `tests` on the Python path).

etcd, kube-apiserver and kubectl are built on first use, which takes minutes. To record a new session, write a file with
only comments and commands into `transcripts`, run this command, and review the output.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import yaml

from clients.kubectl import Kubectl, build_kubectl
from clients.transcripts import FOLDER, read, replay, write
from conformance.real_server import real_server


def main(names: list[str]) -> None:
    """Record the transcripts with these names, or all."""
    binary = build_kubectl()
    with tempfile.TemporaryDirectory(prefix="transcripts-") as folder, real_server(Path(folder)) as server:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(_config(server.url)))
        for path in sorted(FOLDER.glob("*.txt")):
            if not names or path.stem in names:
                print(path.stem, flush=True)
                write(path, list(replay(read(path), Kubectl(binary, kubeconfig, Path(folder), path.stem))))


def _config(url: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": {"server": url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "admin", "user": {"token": "admin-token"}}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        "current-context": "real",
    }


if __name__ == "__main__":
    main(sys.argv[1:])
