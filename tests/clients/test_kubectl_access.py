"""Who may reach a served cluster, and how: tokens, TLS, and addresses beyond this machine."""

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

USERS = 'secret-of-the-chief,chief,1,"system:masters"\nsecret-of-alice,alice,2\n'


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An API that others can reach, too, with two users."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "tokens.csv").write_text(USERS)
    options = ("--bare", "--listen", "0.0.0.0", "--token-auth-file", str(folder / "tokens.csv"))
    with served(folder / "out", *options) as running:
        yield running


def changed(kubeconfig: Path, copy: Path, **cluster: object) -> Path:
    """Write a copy of a kubeconfig with other words about the cluster."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"].update(cluster)
    copy.write_text(yaml.safe_dump(config))
    return copy


def test_the_kubeconfig_is_for_its_owner_alone(cluster: Served) -> None:
    assert stat.S_IMODE(os.stat(cluster.kubeconfig).st_mode) == 0o600


def test_kubectl_knows_who_it_is_and_where(kubectl: Kubectl, cluster: Served) -> None:
    assert "system:masters" in kubectl("auth", "whoami")
    assert kubectl("auth", "can-i", "*", "*") == "yes\n"
    assert f"is running at {cluster.url}" in kubectl("cluster-info")
    assert "Server Version: v1.34.4" in kubectl("version")


def test_a_wrong_token_is_refused(kubectl: Kubectl) -> None:
    kubectl("get", "pods")

    assert kubectl.fails("get", "pods", "--token=guessed") == (
        "error: You must be logged in to the server (Unauthorized)\n"
    )


def test_a_certificate_of_somebody_else_is_not_trusted(
    cluster: Served, bare: Served, kubectl_program: Path, tmp_path: Path
) -> None:
    """The generated authority vouches for its own server only."""
    kubeconfig = changed(cluster.kubeconfig, tmp_path / "other", **{"certificate-authority-data": bare.authority})

    told = Kubectl(kubectl_program, kubeconfig, tmp_path).fails("get", "nodes")

    assert "certificate signed by unknown authority" in told


def test_the_users_of_a_token_file_have_the_rights_they_are_given(
    guarded: Served, kubectl_program: Path, tmp_path: Path
) -> None:
    kubectl = Kubectl(kubectl_program, guarded.kubeconfig, tmp_path)

    assert "chief" in kubectl("auth", "whoami")
    assert "alice" in kubectl("auth", "whoami", "--token=secret-of-alice")
    assert kubectl.fails("get", "pods", "--token=secret-of-alice") == (
        'Error from server (Forbidden): pods is forbidden: User "alice" cannot list resource "pods" '
        'in API group "" in the namespace "default"\n'
    )
    kubectl("create", "clusterrole", "looker", "--verb=get,list", "--resource=pods")
    kubectl("create", "rolebinding", "alice-looks", "--clusterrole=looker", "--user=alice")
    assert kubectl("get", "pods", "--token=secret-of-alice") == "No resources found in default namespace.\n"


def test_the_roles_that_every_cluster_has_give_their_rights(kubectl: Kubectl) -> None:
    kubectl("create", "rolebinding", "bob-edits", "--clusterrole=edit", "--user=bob")

    assert kubectl("auth", "can-i", "create", "deployments", "--as=bob") == "yes\n"
    assert kubectl.fails("auth", "can-i", "create", "rolebindings", "--as=bob") == "no\n"
    assert kubectl.fails("auth", "can-i", "create", "deployments", "--as=bob", "--namespace=default") == "no\n"


def test_beyond_this_machine_there_is_only_tls(guarded: Served, kubectl_program: Path, tmp_path: Path) -> None:
    assert "Active" in Kubectl(kubectl_program, guarded.kubeconfig, tmp_path)("get", "namespaces")

    with socket.create_connection(("127.0.0.1", guarded.port)) as plain:
        plain.sendall(b"GET /version HTTP/1.1\r\nHost: here\r\n\r\n")
        assert b"Client sent an HTTP request to an HTTPS server." in plain.recv(4096)


def test_an_address_that_is_not_ours_is_an_error_of_the_user(tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path / "out", "--bare", "--listen", "192.0.2.1"), capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "cannot be listened on" in done.stderr
    assert "Traceback" not in done.stderr
