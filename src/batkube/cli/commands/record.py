"""`batkube record`: record a live cluster as a workload and a platform that replay it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batkube.cli.options.durations import positive_duration
from batkube.kernel.errors import InputError


def record(
    kubeconfig: Annotated[Path | None, typer.Option(metavar="FILE", help="The kubeconfig of the cluster.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="The folder to write; must not exist yet.")
    ] = None,
    context: Annotated[
        str | None, typer.Option(metavar="NAME", help="The context of the kubeconfig; its current one by default.")
    ] = None,
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Record only the pods of this namespace; all by default.")
    ] = "",
    length: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="TIME", help="The duration of the recording, such as 1h; by default until Ctrl-C."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the recording in the folder.")] = False,
    hash_names: Annotated[
        bool, typer.Option("--hash-names", help="Replace all names by hashes, and omit labels and taints.")
    ] = False,
    gangs: Annotated[
        bool, typer.Option("--gangs", help="Combine the pods of a Job that runs all of them at once into one job.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only notes.")] = False,
) -> None:
    """Record a live cluster, to replay it in a simulation."""
    from batkube.recording.record import PLATFORM_FILE, WORKLOAD_FILE, RecordingOptions
    from batkube.recording.record import record as record_cluster

    if kubeconfig is None or out is None:
        missing = "kubeconfig" if kubeconfig is None else "out"
        raise InputError("batkube record", problem=f"option --{missing} is missing", remedy=f"add --{missing}")
    options = RecordingOptions(
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
            stop_hint = "stop with Ctrl-C" if length is None else f"for {length}; stop earlier with Ctrl-C"
            typer.echo(f"recording {url}: {stop_hint}", err=True)

    replay = record_cluster(options, announce)
    for note, count in replay.notes:
        typer.echo(f"note: {note.message_with_count(count)}", err=True)
    if not quiet and replay.jobs:
        typer.echo(f"recorded: jobs {len(replay.jobs):,}, nodes {len(replay.nodes):,}; replay them with:")
        # First-fit skips pods that do not fit, like kube-scheduler. First come, first served waits for them.
        inputs = f"--workload {out / WORKLOAD_FILE} --platform {out / PLATFORM_FILE}"
        typer.echo(f"batkube run {inputs} --scheduler policy:first-fit --out replayed")
    elif not quiet:
        typer.echo(f"recorded: no job that can be replayed yet; continue with: --resume -o {out}")
