"""The service account of a program: the files by which it finds and trusts the API as one does in a pod.

A pod has them at one fixed place (client-go: rest.InClusterConfig). There is no such place on the machine, so a program
gets to see it in one of two ways: the preloaded library leads it to the files, or it is started with file systems of
its own, in which they are there.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from batkube.kernel.files.private import write_private
from batkube.programs.startup.certificates import write_certificates

MOUNT_PATH = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NAMESPACE = "kube-system"


def write_service_account(folder: Path, token: str, address: str) -> ssl.SSLContext:
    """Write the files into `folder`, for a server at `address`; return what that server is to show."""
    own = folder.parent / "server"
    write_certificates(own, "kube-apiserver", address)
    folder.mkdir(parents=True, exist_ok=True)
    write_private(folder / "token", token)
    write_private(folder / "namespace", _NAMESPACE)
    write_private(folder / "ca.crt", (own / "tls.crt").read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.num_tickets = 0  # nobody comes back to a session, and a client need not read them
    context.load_cert_chain(own / "tls.crt", own / "tls.key")
    return context
