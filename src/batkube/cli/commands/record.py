"""`batkube record`: a live cluster, watched, as a workload and a platform that replay it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.options.durations import positive_duration
from batkube.kernel.errors import InputError


def record(
    kubeconfig: Annotated[Path | None, typer.Option(metavar="FILE", help="Of the cluster to watch.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="The folder to write; must not exist yet.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="A context of the kubeconfig; its current one.")
    ] = None,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Record the pods of this namespace only; all unless given.")
    ] = "",
    length: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="How long, such as 1h; until Ctrl-C unless given.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the recording that is in the folder.")] = False,
    hash_names: Annotated[
        bool, typer.Option("--hash-names", help="Write hashes for all names; labels and taints are left out.")
    ] = False,
    gangs: Annotated[
        bool, typer.Option("--gangs", help="Make one job of the pods of a Job that wants all of them at once.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but notes.")] = False,
) -> None:
    """Watch a live cluster and write what replays it."""
    from batkube.recording.record import PLATFORM_FILE, WORKLOAD_FILE, RecordingOptions
    from batkube.recording.record import record as watch

    if kubeconfig is None or out is None:
        missing = "kubeconfig" if kubeconfig is None else "out"
        raise InputError("batkube record", problem=f"no {missing} given", remedy=f"add --{missing}")
    request = RecordingOptions(
        kubeconfig=kubeconfig,
        out=out,
        context=context,
        namespace=namespace,
        length=None if length is None else positive_duration("--for", length),
        is_resumed=resume,
        with_hashed_names=hash_names,
        with_gangs=gangs,
    )

    def announce(url: str) -> None:
        if not quiet:
            ending = "Ctrl-C ends it" if length is None else f"for {length}; Ctrl-C ends it earlier"
            typer.echo(f"recording {url}: {ending}", err=True)

    replay = watch(request, announce)
    for note, count in replay.notes:
        typer.echo(f"note: {note.message_with_count(count)}", err=True)
    if not quiet and replay.jobs:
        typer.echo(f"recorded: jobs {len(replay.jobs):,}, nodes {len(replay.nodes):,}; replay them with:")
        # First-fit passes over what does not fit, as Kubernetes' own scheduler does; first come, first served waits.
        inputs = f"--workload {out / WORKLOAD_FILE} --platform {out / PLATFORM_FILE}"
        typer.echo(f"batkube run {inputs} --scheduler policy:first-fit --out replayed")
    elif not quiet:
        typer.echo(f"recorded: no job that can be replayed yet; go on with: --resume -o {out}")
