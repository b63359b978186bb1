"""Access to a served cluster with kubectl: tokens, TLS, addresses."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clients.kubectl import Kubectl
from clients.serving import Served, command, served

USERS = 'secret-of-admin,admin,1,"system:masters"\nsecret-of-alice,alice,2\n'


@pytest.fixture(scope="module")
def with_users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An API with two users that listens on all addresses."""
    folder = tmp_path_factory.mktemp("with-users")
    (folder / "tokens.csv").write_text(USERS)
    options = ("--bare", "--listen", "0.0.0.0", "--token-auth-file", str(folder / "tokens.csv"))
    with served(folder / "out", *options) as running:
        yield running


def copy_kubeconfig(kubeconfig: Path, copy: Path, **cluster: object) -> Path:
    """Write a copy of a kubeconfig with changed fields of the cluster."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"].update(cluster)
    copy.write_text(yaml.safe_dump(config))
    return copy


def test_only_the_owner_can_read_the_kubeconfig(cluster: Served) -> None:
    assert stat.S_IMODE(os.stat(cluster.kubeconfig).st_mode) == 0o600


def test_kubectl_prints_user_server_and_version(kubectl: Kubectl, cluster: Served) -> None:
    assert "system:masters" in kubectl("auth", "whoami")
    assert kubectl("auth", "can-i", "*", "*") == "yes\n"
    assert f"is running at {cluster.url}" in kubectl("cluster-info")
    assert "Server Version: v1.34.4" in kubectl("version")


def test_a_wrong_token_is_rejected(kubectl: Kubectl) -> None:
    kubectl("get", "pods")

    assert kubectl.fails("get", "pods", "--token=guessed") == (
        "error: You must be logged in to the server (Unauthorized)\n"
    )


def test_a_certificate_of_another_authority_is_not_trusted(
    cluster: Served, bare: Served, kubectl_program: Path, tmp_path: Path
) -> None:
    """Each server has a certificate authority of its own."""
    kubeconfig = copy_kubeconfig(
        cluster.kubeconfig, tmp_path / "other", **{"certificate-authority-data": bare.authority}
    )

    output = Kubectl(kubectl_program, kubeconfig, tmp_path).fails("get", "nodes")

    assert "certificate signed by unknown authority" in output


def test_users_of_a_token_file_have_only_granted_permissions(
    with_users: Served, kubectl_program: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_program, with_users.kubeconfig, tmp_path)

    assert "admin" in kubectl("auth", "whoami")
    assert "alice" in kubectl("auth", "whoami", "--token=secret-of-alice")
    assert kubectl.fails("get", "pods", "--token=secret-of-alice") == (
        'Error from server (Forbidden): pods is forbidden: User "alice" cannot list resource "pods" '
        'in API group "" in the namespace "default"\n'
    )
    kubectl("create", "clusterrole", "viewer", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "alice-views", "--clusterrole=viewer", "--user=alice")
    assert kubectl("get", "pods", "--token=secret-of-alice") == "No resources found in default namespace.\n"


def test_default_cluster_roles_grant_their_permissions(kubectl: Kubectl) -> None:
    kubectl("create", "rolebinding", "bob-edits", "--clusterrole=edit", "--user=bob")

    assert kubectl("auth", "can-i", "create", "deployments", "--as=bob") == "yes\n"
    assert kubectl.fails("auth", "can-i", "create", "rolebindings", "--as=bob") == "no\n"
    assert kubectl.fails("auth", "can-i", "create", "deployments", "--as=bob", "--namespace=default") == "no\n"


def test_a_server_on_all_addresses_rejects_plain_http(
    with_users: Served, kubectl_program: Path, tmp_path: Path
) -> None:
    assert "Active" in Kubectl(kubectl_program, with_users.kubeconfig, tmp_path)("get", "namespaces")

    with socket.create_connection(("127.0.0.1", with_users.port)) as plain:
        plain.sendall(b"GET /version HTTP/1.1\r\nHost: here\r\n\r\n")
        assert b"Client sent an HTTP request to an HTTPS server." in plain.recv(4096)


def test_an_address_of_another_machine_is_rejected(tmp_path: Path) -> None:
    result = subprocess.run(
        command(tmp_path / "out", "--bare", "--listen", "192.0.2.1"), capture_output=True, text=True, check=False
    )

    assert result.returncode == 2
    assert "cannot listen on this address" in result.stderr
    assert "Traceback" not in result.stderr
