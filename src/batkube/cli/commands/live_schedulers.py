"""`batkube kubeflux` and `batkube scheduler`: run our schedulers on a live cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batkube.kernel.errors import InputError

_Kubeconfig = Annotated[Path | None, typer.Option(metavar="FILE", help="The kubeconfig of the cluster.")]
_Context = Annotated[
    str | None, typer.Option(metavar="NAME", help="The context of the kubeconfig; its current one by default.")
]


def kubeflux(
    kubeconfig: _Kubeconfig = None,
    context: _Context = None,
    scheduler_name: Annotated[
        str, typer.Option(metavar="NAME", help="The schedulerName of the pods to schedule.")
    ] = "kubeflux",
    sync: Annotated[
        str,
        typer.Option(
            metavar="MODE", help="How its graph is synchronized with the cluster: none, own, rebuild or deltas."
        ),
    ] = "deltas",
    match_policy: Annotated[
        str,
        typer.Option(
            metavar="POLICY", help="The order in which vertices are preferred: low, high, lonode, hinode, first, …."
        ),
    ] = "lonode",
    audit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write differences between graph and cluster (JSON lines), and the graph next to it."
        ),
    ] = None,
) -> None:
    """Schedule the pods of a live cluster with KubeFlux."""
    from batkube.emulation.client.connection import ClusterConnection
    from batkube.graph.traversal.match_policy import match_policy as check_match_policy
    from batkube.joining.audit_files import AuditFiles
    from batkube.joining.schedulers import standalone_kubeflux
    from batkube.kubeflux.cache_sync import SyncMode
    from batkube.kubeflux.scheduler import KubeFluxSettings

    if sync not in list(SyncMode):
        raise InputError(f"--sync {sync}", problem="is not a mode", remedy=f"use one of {', '.join(SyncMode)}")
    check_match_policy(match_policy)
    settings = KubeFluxSettings(_checked_scheduler_name(scheduler_name), SyncMode(sync), match_policy)
    connection = ClusterConnection(_required_kubeconfig(kubeconfig, "kubeflux"), context)
    if audit is None:
        standalone_kubeflux(connection, settings, None).run()
        return
    with AuditFiles(audit) as files:
        standalone_kubeflux(connection, settings, files).run()


def scheduler(
    policy: Annotated[
        str | None, typer.Option(metavar="NAME", help="A policy of `batkube policies`, or ./mine.py:MyPolicy.")
    ] = None,
    policy_arg: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An argument of the policy; may be repeated.")
    ] = None,
    kubeconfig: _Kubeconfig = None,
    context: _Context = None,
    scheduler_name: Annotated[
        str, typer.Option(metavar="NAME", help="The schedulerName of the pods to schedule.")
    ] = "batkube",
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="The seed of the policy's random choices.")] = 0,
) -> None:
    """Schedule the pods of a live cluster with a policy."""
    from batkube.emulation.client.connection import ClusterConnection
    from batkube.joining.schedulers import standalone_policy

    if policy is None:
        raise InputError(
            "batkube scheduler", problem="the policy is missing", remedy="add --policy, see `batkube policies`"
        )
    arguments = {}
    for text in policy_arg or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--policy-arg {text}", problem="is not of the form NAME=VALUE")
        arguments[name] = value
    connection = ClusterConnection(_required_kubeconfig(kubeconfig, "scheduler"), context)
    name = policy.removeprefix("policy:")
    standalone_policy(connection, name, arguments, _checked_scheduler_name(scheduler_name), seed=seed).run()


def _required_kubeconfig(kubeconfig: Path | None, command: str) -> Path:
    if kubeconfig is None:
        raise InputError(f"batkube {command}", problem="the kubeconfig is missing", remedy="add --kubeconfig FILE")
    return kubeconfig


def _checked_scheduler_name(scheduler_name: str) -> str:
    if not scheduler_name.strip():
        raise InputError(
            "--scheduler-name", problem="is empty", remedy="write the schedulerName of the pods to schedule"
        )
    return scheduler_name
