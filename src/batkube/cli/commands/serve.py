"""`batkube serve`: a simulated cluster for kubectl and any other client, in real time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.commands.run import build_scheduler, policy_arguments
from batkube.cluster.kinds import validate_versions
from batkube.kernel.errors import InputError
from batkube.policies.interface import Policy
from batkube.policies.registry.catalogue import load_policy
from batkube.programs.program import ExternalProgram
from batkube.scenarios.keys import is_controller_manager
from batkube.scenarios.scenario import CONTROLLERS_REMEDY, NO_CONTROLLERS, OUR_CONTROLLERS, POLICY_PREFIX

#: Faster than this, a day passes in a second.
_SPEED_MAX = 86_400.0
#: Our controllers, and what they were called before `run` had any.
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
    int, typer.Option(metavar="N", min=0, max=65535, help="The port to listen on; any free one unless given.")
]
_Scheduler = Annotated[
    str,
    typer.Option(
        metavar="SCHEDULER", help="default: like kube-scheduler; policy:NAME; none: an attached one binds the pods."
    ),
]
_Arguments = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="name=value, handed to the policy; may be repeated.")
]
_Controllers = Annotated[
    str,
    typer.Option(
        metavar="WHICH",
        help="Who looks after Jobs, Deployments, …: ours; kube-controller-manager@1.34.4, the real one; none.",
    ),
]
_Latencies = Annotated[Path | None, typer.Option(metavar="FILE", help="Start-up and completion delays (YAML).")]
_Rules = Annotated[Path | None, typer.Option(metavar="FILE", help="What containers do, by their image or pod (YAML).")]
_Tokens = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Users and their tokens, as kube-apiserver's option of this name."),
]
_Api = Annotated[
    list[str] | None,
    typer.Option(
        metavar="VERSION",
        help="A version of the API that is off by default, e.g. admissionregistration.k8s.io/v1beta1; may be repeated.",
    ),
]
_KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", help="Log a bug of Batkube and continue; unless given, it ends the server."),
]
_Bare = Annotated[bool, typer.Option("--bare", help="The API alone: no nodes, kubelets, controllers or scheduler.")]


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
    bare: _Bare = False,
    keep_going: _KeepGoing = False,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of every random stream.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the output folder of an earlier run.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the path of the kubeconfig only.")] = False,
) -> None:
    """Serve the Kubernetes API of a simulated cluster."""
    from batkube.execution.latencies.delays import read_latencies
    from batkube.platforms.reader import read_platform
    from batkube.serving.service import Address, ServeOptions, serve
    from batkube.workloads.container_rules.reader import read_rules

    _check_options(platform, out, speed, bare)
    assert out is not None
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
        api=validate_versions(api or [], "--api"),
        seed=seed,
        keep_going=keep_going,
        command=["batkube", *sys.argv[1:]],
    )

    def announce(address: Address) -> None:
        if quiet:
            typer.echo(str(address.kubeconfig))
        else:
            nodes = 0 if service.platform is None else len(service.platform.machines)
            what = "the bare API" if bare else f"{nodes:,} node{'s' if nodes != 1 else ''}"
            typer.echo(
                f"serving {what} at {address.url}; use it with: export KUBECONFIG={address.kubeconfig.resolve()}"
            )
        sys.stdout.flush()

    serve(service, announce)
    # Python would now free every object of the cluster one by one, which takes seconds when there are many; the system
    # takes back all of it at once.
    os._exit(0)


def _scheduler(text: str, arguments: list[str]) -> Policy | bool:
    """Return the policy that `text` names, or whether there is to be a scheduler at all."""
    if text.startswith(POLICY_PREFIX):
        return load_policy(text.removeprefix(POLICY_PREFIX), policy_arguments(arguments))
    if arguments:
        raise InputError("--scheduler-arg", problem="there is no policy to hand it to", remedy="name a policy:NAME")
    if text not in ("default", "none"):
        raise InputError(
            f"--scheduler {text}",
            problem="is no scheduler",
            remedy="give default, none or policy:NAME (batkube policies)",
        )
    return text == "default"


def _controller_manager(text: str, speed: float, bare: bool) -> ExternalProgram:
    """Return the program that looks after objects."""
    what = f"--controllers {text}"
    if not is_controller_manager(text):
        raise InputError(what, problem="is not possible", remedy=CONTROLLERS_REMEDY)
    if bare:
        raise InputError(what, problem="there are no nodes to make pods for", remedy="leave out --bare")
    if speed != 1:
        problem = "its seconds are real ones, and the cluster's are not"
        raise InputError(what, problem=problem, remedy="leave out --speed")
    from batkube.programs.selection.external_programs import controller_manager

    return controller_manager(text, build_scheduler)


def _check_options(platform: str | None, out: Path | None, speed: float, bare: bool) -> None:
    """Refuse what makes no sense before anything is started."""
    if out is None:
        raise InputError("batkube serve", problem="no output folder given", remedy="add --out DIR")
    if platform is None and not bare:
        raise InputError(
            "batkube serve", problem="no platform given", remedy="add --platform, such as 16x4,16Gi; or --bare"
        )
    if not 0 < speed <= _SPEED_MAX:
        raise InputError(f"--speed {speed:g}", problem="must be more than 0 and at most 86400")
