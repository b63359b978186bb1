"""`batkube emulate`: run a workload on a real cluster in real time, with the outputs of a simulated run."""

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

#: At higher speeds, pods would hardly start before they end.
_SPEED_MAX = 86_400.0

_Requests = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RESOURCE=…",
        help="Change the requests of pods: RESOURCE=QUANTITY (cpu=500m), RESOURCE=xFACTOR (cpu=x0.9), "
        "RESOURCE=OTHER-NAME (gpu=nvidia.com/gpu), RESOURCE= to remove it; may be repeated.",
    ),
]

_Kind = Annotated[
    str,
    typer.Option(
        metavar="KIND", help="The objects of a job: pod, pod-group (and pods), job (batch/v1), kueue-job (in a queue)."
    ),
]
_PodGroup = Annotated[
    str | None,
    typer.Option(metavar="VERSION", help="The API group and version of PodGroups, if the cluster has several."),
]


def emulate(
    kubeconfig: Annotated[Path | None, typer.Option(metavar="FILE", help="The kubeconfig of the cluster.")] = None,
    workload: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Batsim .json, .swf[.gz], Kubernetes .yaml or openb .csv; repeat for several workloads.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder to write; must not exist yet.")] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="The context of the kubeconfig; its current one by default.")
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option(metavar="PLATFORM", help="The platform that describes the cluster, for the order of its nodes."),
    ] = None,
    speed: Annotated[
        float,
        typer.Option(metavar="FACTOR", help="Workload seconds per real second; also shortens the containers' sleep."),
    ] = 1.0,
    image: Annotated[
        str,
        typer.Option(metavar="IMAGE", help="The image of the containers of jobs without one; it must contain `sleep`."),
    ] = "busybox",
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="The namespace; by default, a new one is created.")
    ] = None,
    kind: _Kind = "pod",
    pod_group: _PodGroup = None,
    requests: _Requests = None,
    scheduler_name: Annotated[
        str, typer.Option(metavar="NAME", help="The scheduler of jobs without one.")
    ] = "default-scheduler",
    patience: Annotated[str, typer.Option(metavar="TIME", help="Stop if nothing changes for this real time.")] = "10m",
    force: Annotated[bool, typer.Option("--force", help="Replace the output folder of an earlier run.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the results, one name=value per line.")] = False,
) -> None:
    """Run a workload on a real cluster, in real time."""
    from batkube.emulation.emulate import emulate as emulate_workload
    from batkube.emulation.settings import Emulation, JobKind, parse_request_mapping

    if kubeconfig is None or not workload or out is None:
        inputs = {"kubeconfig": kubeconfig, "workload": workload, "out": out}
        missing = next(name for name, value in inputs.items() if not value)
        raise InputError("batkube emulate", problem=f"option --{missing} is missing", remedy=f"add --{missing}")
    _check_options(speed, image, kind, pod_group)
    emulation = Emulation(
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
    with progress_display(quiet, "emulated") as progress:
        outcomes = emulate_workload(emulation, out, force=force, command=["batkube", *sys.argv[1:]], progress=progress)
    print_results(out, Counter(outcome.state for outcome in outcomes), quiet, "emulated")


def _check_options(speed: float, image: str, kind: str, pod_group: str | None) -> None:
    from batkube.emulation.settings import JobKind

    if not 0 < speed <= _SPEED_MAX:
        raise InputError(f"--speed {speed:g}", problem="must be greater than 0 and at most 86400")
    if not image.strip():
        raise InputError("--image", problem="is empty", remedy="use an image that contains `sleep`, such as busybox")
    if kind not in list(JobKind):
        raise InputError(f"--kind {kind}", problem="is not a kind of job", remedy=f"use one of {', '.join(JobKind)}")
    if pod_group is not None and kind != JobKind.POD_GROUP:
        raise InputError(
            f"--pod-group {pod_group}",
            problem=f"cannot be used with --kind {kind}",
            remedy="use --kind pod-group, or omit --pod-group",
        )
