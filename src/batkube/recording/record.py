"""A recording, whole: a folder with a log, and the workload and platform that are made of it at the end."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from batkube.emulation.client.connection import ClusterConnection
from batkube.kernel.errors import InputError
from batkube.kernel.files.replacement import write_atomically
from batkube.kernel.instants import Duration
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
    """What is to be recorded."""

    kubeconfig: Path
    out: Path
    context: str | None = None
    #: The only namespace to record; "" for all.
    namespace: str = ""
    #: How long, in real time; None until somebody interrupts it.
    length: Duration | None = None
    is_resumed: bool = False
    with_hashed_names: bool = False
    with_gangs: bool = False


def record(request: RecordingOptions, announce: Callable[[str], None]) -> Replay:
    """Record a cluster and write what replays it; `announce` is told where the cluster is once it answers.

    Raises InputError and RunFailed. What was seen is kept in any case.
    """
    earlier = _existing_lines(request)
    access = ClusterConnection(request.kubeconfig, request.context)
    recorder = ClusterRecorder(access, request.namespace)
    # Asked first: of a cluster that is not there, or that says no, nothing is written.
    recorder.check_access()
    settings = _settings_for(request, access.url, earlier)
    with _open_log(request.out, settings, is_new=not earlier) as log:
        announce(access.url)
        recorder.record(log, earlier, NameAnonymiser(settings.key), request.length)
    return write_replay(request.out, with_gangs=request.with_gangs)


def write_replay(folder: Path, *, with_gangs: bool = False) -> Replay:
    """Write the workload and the platform of the recording in a folder, in the place of earlier ones."""
    replay = replay_of(read_log(folder / LOG_FILE), _WORKLOAD_NAME, gangs=with_gangs)
    workload = Workload(_WORKLOAD_NAME, str(folder / LOG_FILE), replay.jobs, len(replay.nodes), tuple(replay.notes))
    losses = write_workload(workload, folder / WORKLOAD_FILE, force=True)
    nodes = {"apiVersion": "v1", "kind": "NodeList", "items": [_node_manifest(node) for node in replay.nodes]}
    write_atomically(folder / PLATFORM_FILE, msgspec.json.format(msgspec.json.encode(nodes), indent=1) + b"\n")
    return replay._replace(notes=[*replay.notes, *losses])


def _existing_lines(request: RecordingOptions) -> list[Line]:
    """Return what the log holds already; nothing of a new one. Raises InputError."""
    if not request.is_resumed:
        if request.out.exists():
            raise InputError(
                request.out, problem="exists already", remedy="go on with it (--resume), or choose another name"
            )
        return []
    if not (request.out / LOG_FILE).is_file():
        raise InputError(request.out, problem="there is no recording to go on with", remedy="leave out --resume")
    truncate_partial_line(request.out / LOG_FILE)
    return read_log(request.out / LOG_FILE)


def _settings_for(request: RecordingOptions, url: str, earlier: list[Line]) -> RecordingSettings:
    """Return the settings of the recording, which stay as they were when it began. Raises InputError."""
    key = secrets.token_hex(16) if request.with_hashed_names else ""
    if not earlier:
        return _new_settings(request, url, NameAnonymiser(key), key)
    settings = earlier[0]
    assert isinstance(settings, RecordingSettings), "read_log has seen to it"
    wanted = _new_settings(request, url, NameAnonymiser(settings.key), settings.key)
    for what, is_same, remedy in (
        ("cluster", wanted.cluster == settings.cluster, "give the kubeconfig of that one"),
        ("namespace", wanted.namespace == settings.namespace, f"it was {settings.namespace or 'all of them'}"),
        ("--hash-names", request.with_hashed_names == bool(settings.key), "give it both times, or never"),
    ):
        if not is_same:
            raise InputError(request.out, problem=f"was recorded with another {what}", remedy=remedy)
    return settings


def _new_settings(request: RecordingOptions, url: str, names: NameAnonymiser, key: str) -> RecordingSettings:
    return RecordingSettings(names.anonymise("cluster", url), names.anonymise("ns", request.namespace), key)


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
