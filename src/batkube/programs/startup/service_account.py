"""Service account files, with which a program finds and trusts the API as in a pod.

A pod has them at a fixed path (client-go: rest.InClusterConfig), which does not exist on this machine. The program sees
the files in one of two ways: the preloaded library redirects the path, or the program is started in a mount namespace
that contains them.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from batkube.files.private import write_private
from batkube.programs.startup.certificates import write_certificates

MOUNT_PATH = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NAMESPACE = "kube-system"


def write_service_account(folder: Path, token: str, address: str) -> ssl.SSLContext:
    """Write the files for a server at `address` into `folder`; return the server's TLS settings."""
    server_folder = folder.parent / "server"
    write_certificates(server_folder, "kube-apiserver", address)
    folder.mkdir(parents=True, exist_ok=True)
    write_private(folder / "token", token)
    write_private(folder / "namespace", _NAMESPACE)
    write_private(folder / "ca.crt", (server_folder / "tls.crt").read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.num_tickets = 0  # clients never resume a session, so tickets are useless
    context.load_cert_chain(server_folder / "tls.crt", server_folder / "tls.key")
    return context
