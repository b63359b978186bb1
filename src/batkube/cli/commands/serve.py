"""`batkube serve`: serve a simulated cluster to kubectl and other clients, in real time."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.commands.run import build_scheduler, policy_arguments
from batkube.cli.options.page import PageOption, page_of_run
from batkube.cluster.kinds import DEFAULT_KUBERNETES, ServedApi, validate_kubernetes, validate_versions
from batkube.kernel.errors import InputError
from batkube.policies.interface import Policy
from batkube.policies.registry.catalogue import load_policy
from batkube.programs.program import ExternalProgram
from batkube.scenarios.keys import is_controller_manager
from batkube.scenarios.scenario import CONTROLLERS_REMEDY, NO_CONTROLLERS, OUR_CONTROLLERS, POLICY_PREFIX

#: A day per second.
_SPEED_MAX = 86_400.0
#: The values of --controllers for our controllers; `default` is the older one.
_BUILTIN_CONTROLLERS = (OUR_CONTROLLERS, "default")


_Platform = Annotated[
    str | None,
    typer.Option(
        metavar="PLATFORM", help="SimGrid .xml, Node .yaml, openb .csv, or a shorthand such as '1000x8,32Gi'."
    ),
]
_Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The folder to write the kubeconfig to; must not exist yet.")
]
_Port = Annotated[
    int, typer.Option(metavar="N", min=0, max=65535, help="The port to listen on; any free one by default.")
]
_Scheduler = Annotated[
    str,
    typer.Option(metavar="SCHEDULER", help="default: like kube-scheduler; policy:NAME; none: a client binds the pods."),
]
_Arguments = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="An argument of the policy; may be repeated.")
]
_Controllers = Annotated[
    str,
    typer.Option(
        metavar="WHICH",
        help="The controllers of Jobs, Deployments, …: ours; kube-controller-manager@1.34.4, the real one; none.",
    ),
]
_Latencies = Annotated[Path | None, typer.Option(metavar="FILE", help="Start-up and completion delays (YAML).")]
_Rules = Annotated[Path | None, typer.Option(metavar="FILE", help="Rules for the behaviour of containers (YAML).")]
_Tokens = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Users and their tokens, as for kube-apiserver --token-auth-file."),
]
_Api = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VERSION",
        help="Enable an optional API version, e.g. admissionregistration.k8s.io/v1beta1; may be repeated.",
    ),
]
_Kubernetes = Annotated[
    str, typer.Option(metavar="VERSION", help="The version of Kubernetes whose API is served: 1.34 to 1.37.")
]
_KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", help="Log an internal error and continue, instead of stopping the server."),
]
_Bare = Annotated[bool, typer.Option("--bare", help="Only the API: no nodes, kubelets, controllers or scheduler.")]


def serve(
    platform: _Platform = None,
    out: _Out = None,
    port: _Port = 0,
    listen: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    speed: Annotated[float, typer.Option(metavar="FACTOR", help="Virtual seconds per real second.")] = 1.0,
    scheduler: _Scheduler = "default",
    scheduler_arg: _Arguments = None,
    controllers: _Controllers = OUR_CONTROLLERS,
    latencies: _Latencies = None,
    rules: _Rules = None,
    token_auth_file: _Tokens = None,
    api: _Api = None,
    kubernetes: _Kubernetes = DEFAULT_KUBERNETES,
    bare: _Bare = False,
    keep_going: _KeepGoing = False,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of every random stream.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the output folder of an earlier run.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the path of the kubeconfig.")] = False,
    page: PageOption = False,
) -> None:
    """Serve the Kubernetes API of a simulated cluster."""
    from batkube.execution.latencies.delays import read_latencies
    from batkube.platforms.reader import read_platform
    from batkube.serving.service import Address, ServeOptions, serve
    from batkube.workloads.container_rules.reader import read_rules

    _check_options(platform, out, speed, bare)
    assert out is not None
    kubernetes = validate_kubernetes(kubernetes, "--kubernetes")
    service = ServeOptions(
        platform=None if platform is None or bare else read_platform(platform),
        out=out,
        force=force,
        host=listen,
        port=port,
        speed=speed,
        scheduler=_scheduler(scheduler, scheduler_arg or []),
        controllers=controllers in _BUILTIN_CONTROLLERS,
        manager=None
        if controllers in (*_BUILTIN_CONTROLLERS, NO_CONTROLLERS)
        else _controller_manager(controllers, speed, bare),
        latencies=None if latencies is None else read_latencies(latencies),
        rules=() if rules is None else read_rules(rules),
        token_file=token_auth_file,
        api=ServedApi(kubernetes, validate_versions(api or [], "--api", kubernetes=kubernetes)),
        seed=seed,
        keep_going=keep_going,
        command=["batkube", *sys.argv[1:]],
    )

    def announce(address: Address) -> None:
        if quiet:
            typer.echo(str(address.kubeconfig))
        else:
            nodes = 0 if service.platform is None else len(service.platform.machines)
            subject = "the bare API" if bare else f"{nodes:,} node{'s' if nodes != 1 else ''}"
            typer.echo(
                f"serving {subject} at {address.url}; use it with: export KUBECONFIG={address.kubeconfig.resolve()}"
            )
        sys.stdout.flush()

    with page_of_run(out) as cluster_page:
        observe = functools.partial(cluster_page.show, summary="a served cluster", from_now=True)
        serve(service, announce, observe if page else None)
    # Skip Python's shutdown: freeing every object of a large cluster takes seconds, and the OS frees all memory anyway.
    os._exit(0)


def _scheduler(text: str, arguments: list[str]) -> Policy | bool:
    """Return the policy `text`, True for the default scheduler, or False for none."""
    if text.startswith(POLICY_PREFIX):
        return load_policy(text.removeprefix(POLICY_PREFIX), policy_arguments(arguments))
    if arguments:
        raise InputError(
            "--scheduler-arg", problem="requires a policy", remedy="add --scheduler policy:NAME, or omit it"
        )
    if text not in ("default", "none"):
        raise InputError(
            f"--scheduler {text}",
            problem="is not a scheduler",
            remedy="use default, none or policy:NAME (see `batkube policies`)",
        )
    return text == "default"


def _controller_manager(text: str, speed: float, bare: bool) -> ExternalProgram:
    """Return the program of a real kube-controller-manager."""
    option = f"--controllers {text}"
    if not is_controller_manager(text):
        raise InputError(option, problem="is not a set of controllers", remedy=CONTROLLERS_REMEDY)
    if bare:
        raise InputError(option, problem="cannot be combined with --bare, which has no nodes", remedy="omit --bare")
    if speed != 1:
        problem = f"cannot be combined with --speed {speed:g}, because the program runs in real time"
        raise InputError(option, problem=problem, remedy="omit --speed")
    from batkube.programs.selection.external_programs import controller_manager

    return controller_manager(text, build_scheduler)


def _check_options(platform: str | None, out: Path | None, speed: float, bare: bool) -> None:
    """Check the options before anything is started. Raises InputError."""
    if out is None:
        raise InputError("batkube serve", problem="the output folder is missing", remedy="add --out DIR")
    if platform is None and not bare:
        raise InputError(
            "batkube serve",
            problem="the platform is missing",
            remedy="add --platform 16x4,16Gi, for example, or --bare",
        )
    if not 0 < speed <= _SPEED_MAX:
        raise InputError(f"--speed {speed:g}", problem="must be greater than 0 and at most 86400")
