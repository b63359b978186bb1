"""Flags that a scheduler takes and then ignores, since it has a configuration file.

kube-scheduler reads its deprecated flags only without `--config` (cmd/kube-scheduler/app/options: `ApplyDeprecated`),
and in a run it always has one: our kubeconfig stands in it. Those of leader election count in both cases.
"""

from __future__ import annotations

from collections.abc import Iterator

from batkube.programs.program import ExternalProgram

#: Where the configuration has what a flag means.
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
    """Yield each argument of the user's that has no effect, and the field of the configuration that would have it."""
    if program.start.has_profiles and program.start.configuration_flags:
        for text in program.arguments:
            field = _FIELDS.get(text.partition("=")[0])
            if field is not None:
                yield text, field
