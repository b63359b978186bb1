"""Record a cluster into a folder: the log, and the workload and platform that are computed from it at the end."""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from batkube.emulation.client.connection import ClusterConnection, InvalidResponse
from batkube.files.replacement import write_atomically
from batkube.kernel.errors import InputError
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Duration
from batkube.kernel.quantities import format_amount
from batkube.recording.descriptions import NameAnonymiser
from batkube.recording.log import (
    LOG_FILE,
    Line,
    NodeObservation,
    RecordingLog,
    RecordingSettings,
    read_log,
    truncate_partial_line,
)
from batkube.recording.recorder import ClusterRecorder
from batkube.recording.replay import Replay, replay_of
from batkube.workloads.model import Workload
from batkube.workloads.writer import write_workload

WORKLOAD_FILE, PLATFORM_FILE = "workload.yaml", "platform.json"
_WORKLOAD_NAME = "recorded"


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """The options of a recording."""

    kubeconfig: Path
    out: Path
    context: str | None = None
    #: The namespace to record; "" for all.
    namespace: str = ""
    #: The real duration of the recording; None to record until interrupted.
    length: Duration | None = None
    is_resumed: bool = False
    with_hashed_names: bool = False
    with_gangs: bool = False


def record(options: RecordingOptions, announce: Callable[[str], None]) -> Replay:
    """Record a cluster, and write the workload and platform that replay it.

    `announce` receives the URL of the cluster when recording starts. Raises InputError and RunFailed; the log is kept
    in any case.
    """
    earlier = _existing_lines(options)
    # A silent server must not make the recording longer than requested.
    request_s = math.inf if options.length is None else options.length / NANOSECONDS_PER_SECOND
    cluster = ClusterConnection(options.kubeconfig, options.context, request_s=request_s)
    recorder = ClusterRecorder(cluster, options.namespace)
    try:
        # Check first, so that nothing is written if the cluster is unreachable or forbids access.
        recorder.check_access()
        settings = _settings_for(options, cluster.url, earlier)
        with _open_log(options.out, settings, is_new=not earlier) as log:
            announce(cluster.url)
            recorder.record(log, earlier, NameAnonymiser(settings.key), options.length)
    except InvalidResponse as error:
        raise InputError(
            options.kubeconfig, problem=str(error), remedy="check that this is the kubeconfig of a Kubernetes cluster"
        ) from error
    return write_replay(options.out, with_gangs=options.with_gangs)


def write_replay(folder: Path, *, with_gangs: bool = False) -> Replay:
    """Write the workload and the platform of the recording in a folder; overwrite existing ones."""
    replay = replay_of(read_log(folder / LOG_FILE), _WORKLOAD_NAME, gangs=with_gangs)
    workload = Workload(_WORKLOAD_NAME, str(folder / LOG_FILE), replay.jobs, len(replay.nodes), tuple(replay.notes))
    losses = write_workload(workload, folder / WORKLOAD_FILE, force=True)
    nodes = {"apiVersion": "v1", "kind": "NodeList", "items": [_node_manifest(node) for node in replay.nodes]}
    write_atomically(folder / PLATFORM_FILE, msgspec.json.format(msgspec.json.encode(nodes), indent=1) + b"\n")
    return replay._replace(notes=[*replay.notes, *losses])


def _existing_lines(options: RecordingOptions) -> list[Line]:
    """Return the lines of a log that is resumed; none for a new one. Raises InputError."""
    if not options.is_resumed:
        if options.out.exists():
            raise InputError(
                options.out, problem="exists already", remedy="resume the recording (--resume), or choose another name"
            )
        return []
    if not (options.out / LOG_FILE).is_file():
        raise InputError(options.out, problem="has no recording to resume", remedy="omit --resume")
    truncate_partial_line(options.out / LOG_FILE)
    return read_log(options.out / LOG_FILE)


def _settings_for(options: RecordingOptions, url: str, earlier: list[Line]) -> RecordingSettings:
    """Return the settings of the recording. Raises InputError if those of a resumed one differ."""
    key = secrets.token_hex(16) if options.with_hashed_names else ""
    if not earlier:
        return _new_settings(options, url, NameAnonymiser(key), key)
    settings = earlier[0]
    assert isinstance(settings, RecordingSettings), "read_log checks the first line"
    new_settings = _new_settings(options, url, NameAnonymiser(settings.key), settings.key)
    for setting, is_same, remedy in (
        ("cluster", new_settings.cluster == settings.cluster, "use the kubeconfig of that cluster"),
        (
            "namespace",
            new_settings.namespace == settings.namespace,
            f"it recorded {settings.namespace or 'all namespaces'}",
        ),
        ("--hash-names", options.with_hashed_names == bool(settings.key), "use the option in all sessions, or in none"),
    ):
        if not is_same:
            raise InputError(options.out, problem=f"was recorded with another {setting}", remedy=remedy)
    return settings


def _new_settings(options: RecordingOptions, url: str, anonymiser: NameAnonymiser, key: str) -> RecordingSettings:
    return RecordingSettings(anonymiser.anonymise("cluster", url), anonymiser.anonymise("ns", options.namespace), key)


@contextlib.contextmanager
def _open_log(folder: Path, settings: RecordingSettings, *, is_new: bool) -> Iterator[RecordingLog]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOG_FILE).open("ab")
    except OSError as error:
        raise InputError(folder, problem=f"cannot be written ({error.strerror})") from None
    with file:
        log = RecordingLog(file)
        if is_new:
            log.append(settings)
        yield log


def _node_manifest(node: NodeObservation) -> dict[str, object]:
    metadata: dict[str, object] = {"name": node.name}
    if node.labels:
        metadata["labels"] = node.labels
    spec: dict[str, object] = {"unschedulable": True} if node.is_cordoned else {}
    if node.taints:
        spec["taints"] = node.taints
    amounts = {resource: format_amount(resource, amount) for resource, amount in node.allocatable.items()}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": {"allocatable": amounts}}
