"""Flags that a scheduler accepts but ignores, because it has a configuration file.

kube-scheduler applies its deprecated flags only without `--config` (Kubernetes: cmd/kube-scheduler/app/options,
ApplyDeprecated). In a run it always has one, which contains the kubeconfig. Leader election flags always apply.
"""

from __future__ import annotations

from collections.abc import Iterator

from batkube.programs.program import ExternalProgram

#: The configuration field with the meaning of each flag.
_FIELDS = {
    "--kube-api-qps": "clientConnection.qps",
    "--kube-api-burst": "clientConnection.burst",
    "--kube-api-content-type": "clientConnection.contentType",
    "--profiling": "enableProfiling",
    "--contention-profiling": "enableContentionProfiling",
    "--scheduler-name": "profiles[].schedulerName",
    "--kubeconfig": "nothing: the run has its own",
}


def ignored_flags(program: ExternalProgram) -> Iterator[tuple[str, str]]:
    """Yield each argument of the user that has no effect, and the configuration field to set instead."""
    if program.start.has_profiles and program.start.configuration_flags:
        for text in program.arguments:
            field = _FIELDS.get(text.partition("=")[0])
            if field is not None:
                yield text, field
