"""The real server: etcd and kube-apiserver as programs, on loopback, configured as the recorded cases require.

No controllers, no scheduler, RBAC, the two users of the cases, and no service accounts for pods.
"""

from __future__ import annotations

import contextlib
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from batkube.emulation.control_plane.commands import free_ports
from batkube.schedulers.build.builder import ensure_built
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.named_programs import find_recipe

_START_SECONDS = 120.0
#: The feature gates of the API versions that are off by default.
_GATES = {"admissionregistration.k8s.io/v1beta1": ["MutatingAdmissionPolicy"]}
_TOKENS = 'admin-token,admin,1,"system:masters"\nuser-token,alice,2\n'


class RealServer(NamedTuple):
    """A running kube-apiserver."""

    url: str
    #: Its processes; their CPU time is the cost of its answers.
    processes: tuple[int, ...]


@contextlib.contextmanager
def real_server(folder: Path, api: Sequence[str] = ()) -> Iterator[RealServer]:
    """Run etcd and kube-apiserver with their files in `folder`; build them first if needed (minutes, once).

    `api` are versions to serve that are off by default, with their features.
    """
    binaries = {
        name: str(ensure_built(find_recipe(name), cache_folder(), print)) for name in ("etcd", "kube-apiserver")
    }
    client_port, peer_port, port = free_ports(3)
    (folder / "tokens.csv").write_text(_TOKENS)
    subprocess.run(["openssl", "genrsa", "-out", "sa.key", "2048"], cwd=folder, check=True, capture_output=True)
    etcd = f"http://127.0.0.1:{client_port}"
    url = f"https://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(_running(_etcd(binaries["etcd"], folder, etcd, peer_port), folder / "etcd.log"))
        command = [*_apiserver(binaries["kube-apiserver"], folder, etcd, port), *_switched_on(api)]
        with _running(command, folder / "first-apiserver.log"):
            _await_ready(url)
        # Started again, so that a watch from version 1 is refused, as in any cluster that is not new.
        server = stack.enter_context(_running(command, folder / "apiserver.log"))
        _await_ready(url)
        yield RealServer(url, (store.pid, server.pid))


def _etcd(binary: str, folder: Path, url: str, peer_port: int) -> list[str]:
    return [
        binary,
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls=http://127.0.0.1:{peer_port}",
        "--unsafe-no-fsync",
    ]


def _apiserver(binary: str, folder: Path, etcd: str, port: int) -> list[str]:
    return [
        binary,
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}/certs",
        f"--token-auth-file={folder}/tokens.csv",
        "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={folder}/sa.key",
        f"--service-account-signing-key-file={folder}/sa.key",
        "--endpoint-reconciler-type=none",
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged=true",
    ]


def _switched_on(api: Sequence[str]) -> list[str]:
    if not api:
        return []
    gates = ",".join(f"{gate}=true" for version in api for gate in _GATES[version])
    return [f"--feature-gates={gates}", f"--runtime-config={','.join(f'{version}=true' for version in api)}"]


@contextlib.contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=log.parent)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_ready(url: str) -> None:
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    request = urllib.request.Request(f"{url}/readyz", headers={"Authorization": "Bearer admin-token"})
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(request, timeout=5, context=trusting):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.3)
