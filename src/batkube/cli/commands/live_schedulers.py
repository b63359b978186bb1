"""`batkube kubeflux` and `batkube scheduler`: schedulers of ours on any cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batkube.kernel.errors import InputError

_Kubeconfig = Annotated[Path | None, typer.Option(metavar="FILE", help="Of the cluster to schedule on.")]
_Context = Annotated[str | None, typer.Option(metavar="NAME", help="A context of the kubeconfig; its current one.")]


def kubeflux(
    kubeconfig: _Kubeconfig = None,
    context: _Context = None,
    scheduler_name: Annotated[
        str, typer.Option(metavar="NAME", help="The schedulerName of the pods that it serves.")
    ] = "kubeflux",
    sync: Annotated[
        str,
        typer.Option(metavar="MODE", help="How its picture follows the cluster: none, own, rebuild or deltas."),
    ] = "deltas",
    match_policy: Annotated[
        str, typer.Option(metavar="POLICY", help="Which vertices are taken: low, high, lonode, hinode, first, ….")
    ] = "lonode",
    audit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write where the picture is wrong, as lines of JSON, and beside it the picture."
        ),
    ] = None,
) -> None:
    """Schedule pods by matching them on a graph, until ended."""
    from batkube.emulation.client.connection import ClusterConnection
    from batkube.graph.traversal.match_policy import match_policy as known_match_policy
    from batkube.joining.audit_files import AuditFiles
    from batkube.joining.schedulers import standalone_kubeflux
    from batkube.kubeflux.cache_sync import SyncMode
    from batkube.kubeflux.scheduler import KubeFluxSettings

    if sync not in list(SyncMode):
        raise InputError(f"--sync {sync}", problem="is not possible", remedy=f"one of {', '.join(SyncMode)}")
    known_match_policy(match_policy)
    settings = KubeFluxSettings(_checked_scheduler_name(scheduler_name), SyncMode(sync), match_policy)
    access = ClusterConnection(_required_kubeconfig(kubeconfig, "kubeflux"), context)
    if audit is None:
        standalone_kubeflux(access, settings, None).run()
        return
    with AuditFiles(audit) as files:
        standalone_kubeflux(access, settings, files).run()


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
        str, typer.Option(metavar="NAME", help="The schedulerName of the pods that it serves.")
    ] = "batkube",
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of what the policy draws by lot.")] = 0,
) -> None:
    """Schedule pods as a policy of ours decides, until ended."""
    from batkube.emulation.client.connection import ClusterConnection
    from batkube.joining.schedulers import standalone_policy

    if policy is None:
        raise InputError("batkube scheduler", problem="no policy given", remedy="add --policy, see `batkube policies`")
    arguments = {}
    for text in policy_arg or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"--policy-arg {text}", problem="is not NAME=VALUE")
        arguments[name] = value
    access = ClusterConnection(_required_kubeconfig(kubeconfig, "scheduler"), context)
    name = policy.removeprefix("policy:")
    standalone_policy(access, name, arguments, _checked_scheduler_name(scheduler_name), seed=seed).run()


def _required_kubeconfig(kubeconfig: Path | None, command: str) -> Path:
    if kubeconfig is None:
        raise InputError(f"batkube {command}", problem="no kubeconfig given", remedy="add --kubeconfig")
    return kubeconfig


def _checked_scheduler_name(scheduler_name: str) -> str:
    if not scheduler_name.strip():
        raise InputError("--scheduler-name", problem="is empty", remedy="give the schedulerName of the pods to serve")
    return scheduler_name
