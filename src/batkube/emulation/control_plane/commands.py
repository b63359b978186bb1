"""The files, users and command lines of the programs of a real control plane.

Each program has its own user, because the API server limits requests by user (Kubernetes documentation, "API Priority
and Fairness"). All files are in one folder, and all programs listen on loopback.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from batkube.cluster.kubeconfigs import kubeconfig
from batkube.files.private import write_private

#: The name and group of each user, by the name of its kubeconfig.
_USERS = {
    "kubeconfig": ("admin", "system:masters"),
    "scheduler.kubeconfig": ("system:kube-scheduler", ""),
    "controllers.kubeconfig": ("system:kube-controller-manager", ""),
    "kwok.kubeconfig": ("kwok", "system:masters"),
}
_SERVER_WITHOUT_LIMITS = (
    "--enable-priority-and-fairness=false",
    "--max-requests-inflight=0",
    "--max-mutating-requests-inflight=0",
)


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The rate limits of the programs; by default those of upstream."""

    #: Requests per second and burst of kube-scheduler and kube-controller-manager; None for their defaults.
    client_qps: float | None = None
    client_burst: int | None = None
    #: Whether API Priority and Fairness is enabled.
    has_server_limits: bool = True


#: Limits that no run on one machine reaches.
NO_LIMITS = RateLimits(client_qps=5000, client_burst=10000, has_server_limits=False)


class PlaneCommands:
    """The command lines of one control plane."""

    def __init__(self, folder: Path, binaries: Mapping[str, Path], limits: RateLimits) -> None:
        """Write the kubeconfigs, tokens and the key of service accounts into `folder`."""
        self._folder = folder
        self._binaries = binaries
        self._limits = limits
        client_port, peer_port, port, self.scheduler_port = free_ports(4)
        self._etcd = f"http://127.0.0.1:{client_port}"
        self._peer = f"http://127.0.0.1:{peer_port}"
        self._port = port
        self._write_users()
        _write_key(folder / "service-accounts.key")

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self._folder / "kubeconfig"

    @property
    def certificate(self) -> Path:
        """The server certificate, which kube-apiserver creates when it starts."""
        return self._folder / "certificates" / "apiserver.crt"

    def etcd(self) -> list[str]:
        """Return the command of etcd, without fsync: the data need not survive a power failure."""
        return [
            str(self._binaries["etcd"]),
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={self._etcd}",
            f"--advertise-client-urls={self._etcd}",
            f"--listen-peer-urls={self._peer}",
            "--unsafe-no-fsync",
            "--quota-backend-bytes=8589934592",
        ]

    def apiserver(self) -> list[str]:
        """Return the command of kube-apiserver."""
        key = self._folder / "service-accounts.key"
        return [
            str(self._binaries["kube-apiserver"]),
            f"--etcd-servers={self._etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={self.certificate.parent}",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--endpoint-reconciler-type=none",
            *(() if self._limits.has_server_limits else _SERVER_WITHOUT_LIMITS),
        ]

    def controller_manager(self) -> list[str]:
        """Return the command of kube-controller-manager."""
        kubeconfig = self._folder / "controllers.kubeconfig"
        limits = {"kube-api-qps": self._limits.client_qps, "kube-api-burst": self._limits.client_burst}
        return [
            str(self._binaries["kube-controller-manager"]),
            *(f"--{use}kubeconfig={kubeconfig}" for use in ("", "authentication-", "authorization-")),
            f"--service-account-private-key-file={self._folder / 'service-accounts.key'}",
            "--use-service-account-credentials",
            "--allocate-node-cidrs=false",
            "--leader-elect=false",
            "--secure-port=0",
            *(f"--{name}={value:g}" for name, value in limits.items() if value is not None),
        ]

    def kwok(self, lease_s: int) -> list[str]:
        """Return the command of KWOK, which replaces the kubelets; `lease_s` is the duration of a node's lease."""
        return [
            str(self._binaries["kwok"]),
            f"--kubeconfig={self._folder / 'kwok.kubeconfig'}",
            f"--config={Path(__file__).with_name('kwok.yaml')}",
            "--manage-all-nodes=true",
            f"--node-lease-duration-seconds={lease_s}",
        ]

    def scheduler(self, configuration: Mapping[str, Any], arguments: Sequence[str]) -> list[str]:
        """Return the command of kube-scheduler; write its configuration, with kubeconfig and rate limits added."""
        limits = {"qps": self._limits.client_qps, "burst": self._limits.client_burst}
        connection = {
            **{name: value for name, value in limits.items() if value is not None},
            **(configuration.get("clientConnection") or {}),
            "kubeconfig": str(self._folder / "scheduler.kubeconfig"),
        }
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **configuration,
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False, **(configuration.get("leaderElection") or {})},
        }
        path = self._folder / "scheduler.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        address = ("--bind-address=127.0.0.1", f"--secure-port={self.scheduler_port}")
        return [str(self._binaries["kube-scheduler"]), f"--config={path}", *address, *arguments]

    def _write_users(self) -> None:
        cluster = {"server": f"https://127.0.0.1:{self._port}", "certificate-authority": str(self.certificate)}
        lines = []
        for file, (user, group) in _USERS.items():
            token = secrets.token_urlsafe()
            lines.append(f'{token},{user},{user},"{group}"\n' if group else f"{token},{user},{user}\n")
            write_private(self._folder / file, kubeconfig(cluster, user, {"token": token}, "real"))
        write_private(self._folder / "tokens.csv", "".join(lines))


def _write_key(path: Path) -> None:
    """Write the private key that signs the tokens of service accounts."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private_format = serialization.PrivateFormat.TraditionalOpenSSL
    write_private(path, key.private_bytes(serialization.Encoding.PEM, private_format, serialization.NoEncryption()))


def free_ports(count: int) -> list[int]:
    """Return free ports of the loopback interface."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [int(sock.getsockname()[1]) for sock in sockets]
