"""`batkube emulate`: a workload on a real cluster, in real time, with the outputs of a simulated run."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.options.durations import positive_duration
from batkube.cli.output.run_results import print_results
from batkube.kernel.errors import InputError
from batkube.simulation.progress import progress_display

#: Much faster, and pods would hardly begin before they end.
_SPEED_MAX = 86_400.0

_Requests = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RESOURCE=…",
        help="What pods ask for instead of the workload's own: RESOURCE=QUANTITY (cpu=500m), RESOURCE=xFACTOR "
        "(cpu=x0.9), RESOURCE=OTHER-NAME (gpu=nvidia.com/gpu), RESOURCE= to leave it out; may be repeated.",
    ),
]

_Kind = Annotated[
    str,
    typer.Option(
        metavar="KIND", help="What jobs become: pod, pod-group (and pods), job (batch/v1), kueue-job (in a queue)."
    ),
]
_PodGroup = Annotated[
    str | None,
    typer.Option(metavar="VERSION", help="Whose PodGroups, if the cluster has several: their group and version."),
]


def emulate(
    kubeconfig: Annotated[Path | None, typer.Option(metavar="FILE", help="Of the cluster to play on.")] = None,
    workload: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Batsim .json, .swf[.gz], Kubernetes .yaml or openb .csv; repeat for several workloads.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder to write; must not exist yet.")] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="A context of the kubeconfig; its current one.")
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option(metavar="PLATFORM", help="The platform that describes the cluster, to number its nodes alike."),
    ] = None,
    speed: Annotated[
        float, typer.Option(metavar="FACTOR", help="The workload's seconds per real second; shorter sleeps, too.")
    ] = 1.0,
    image: Annotated[
        str, typer.Option(metavar="IMAGE", help="Of the containers, which sleep; for jobs that name none.")
    ] = "busybox",
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where to play; unless given, in one made for it.")
    ] = None,
    kind: _Kind = "pod",
    pod_group: _PodGroup = None,
    requests: _Requests = None,
    scheduler_name: Annotated[
        str, typer.Option(metavar="NAME", help="The scheduler of the jobs that name none.")
    ] = "default-scheduler",
    patience: Annotated[
        str, typer.Option(metavar="TIME", help="Give up when nothing happens for so long (real time).")
    ] = "10m",
    force: Annotated[bool, typer.Option("--force", help="Replace the output folder of an earlier run.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the results only, one name=value a line.")] = False,
) -> None:
    """Play a workload on a real cluster, in real time."""
    from batkube.emulation.emulate import emulate as play
    from batkube.emulation.settings import Emulation, JobKind, parse_request_mapping

    if kubeconfig is None or not workload or out is None:
        inputs = {"kubeconfig": kubeconfig, "workload": workload, "out": out}
        missing = next(name for name, value in inputs.items() if not value)
        raise InputError("batkube emulate", problem=f"no {missing} given", remedy=f"add --{missing}")
    _check_options(speed, image, kind, pod_group)
    described = Emulation(
        kubeconfig=kubeconfig,
        workloads=tuple(workload),
        context=context,
        platform=platform,
        speed=speed,
        image=image,
        namespace=namespace,
        kind=JobKind(kind),
        pod_group=pod_group,
        mappings=tuple(parse_request_mapping(text) for text in requests or ()),
        requests=tuple(requests or ()),
        scheduler_name=scheduler_name,
        patience=positive_duration("--patience", patience),
    )
    with progress_display(quiet, "played") as progress:
        outcomes = play(described, out, force=force, command=["batkube", *sys.argv[1:]], progress=progress)
    print_results(out, Counter(outcome.state for outcome in outcomes), quiet, "played")


def _check_options(speed: float, image: str, kind: str, pod_group: str | None) -> None:
    from batkube.emulation.settings import JobKind

    if not 0 < speed <= _SPEED_MAX:
        raise InputError(f"--speed {speed:g}", problem="must be more than 0 and at most 86400")
    if not image.strip():
        raise InputError("--image", problem="is empty", remedy="name an image that holds `sleep`, such as busybox")
    if kind not in list(JobKind):
        raise InputError(f"--kind {kind}", problem="is not possible", remedy=f"one of {', '.join(JobKind)}")
    if pod_group is not None and kind != JobKind.POD_GROUP:
        raise InputError(
            f"--pod-group {pod_group}", problem=f"means nothing with --kind {kind}", remedy="--kind pod-group"
        )
