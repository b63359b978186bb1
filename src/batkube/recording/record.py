"""A recording, whole: a folder with a log, and the workload and platform that are made of it at the end."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from batkube.emulation.access import Access
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration
from batkube.kernel.quantities import format_amount
from batkube.kernel.replacing import write_whole
from batkube.recording.descriptions import Names
from batkube.recording.log import LOG, Line, NodeSighting, RecordingLog, Settings, cut_torn_line, read_log
from batkube.recording.recorder import ClusterWatch
from batkube.recording.replay import Replay, replay_of
from batkube.workloads.model import Workload
from batkube.workloads.writing import write_workload

WORKLOAD, PLATFORM = "workload.yaml", "platform.json"
_NAME = "recorded"


@dataclass(frozen=True, slots=True)
class RecordingRequest:
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


def record(request: RecordingRequest, announce: Callable[[str], None]) -> Replay:
    """Record a cluster and write what replays it; `announce` is told where the cluster is once it answers.

    Raises InputError and RunFailed. What was seen is kept in any case.
    """
    earlier = _earlier(request)
    access = Access(request.kubeconfig, request.context)
    recorder = ClusterWatch(access, request.namespace)
    # Asked first: of a cluster that is not there, or that says no, nothing is written.
    recorder.ask()
    settings = _settings(request, access.url, earlier)
    with _opened_log(request.out, settings, is_new=not earlier) as log:
        announce(access.url)
        recorder.record(log, earlier, Names(settings.key), request.length)
    return write_replay(request.out, with_gangs=request.with_gangs)


def write_replay(folder: Path, *, with_gangs: bool = False) -> Replay:
    """Write the workload and the platform of the recording in a folder, in the place of earlier ones."""
    replay = replay_of(read_log(folder / LOG), _NAME, gangs=with_gangs)
    workload = Workload(_NAME, str(folder / LOG), replay.jobs, len(replay.nodes), tuple(replay.notes))
    losses = write_workload(workload, folder / WORKLOAD, force=True)
    nodes = {"apiVersion": "v1", "kind": "NodeList", "items": [_manifest(node) for node in replay.nodes]}
    write_whole(folder / PLATFORM, msgspec.json.format(msgspec.json.encode(nodes), indent=1) + b"\n")
    return replay._replace(notes=[*replay.notes, *losses])


def _earlier(request: RecordingRequest) -> list[Line]:
    """Return what the log holds already; nothing of a new one. Raises InputError."""
    if not request.is_resumed:
        if request.out.exists():
            raise InputError(
                request.out, problem="exists already", remedy="go on with it (--resume), or choose another name"
            )
        return []
    if not (request.out / LOG).is_file():
        raise InputError(request.out, problem="there is no recording to go on with", remedy="leave out --resume")
    cut_torn_line(request.out / LOG)
    return read_log(request.out / LOG)


def _settings(request: RecordingRequest, url: str, earlier: list[Line]) -> Settings:
    """Return the settings of the recording, which stay as they were when it began. Raises InputError."""
    key = secrets.token_hex(16) if request.with_hashed_names else ""
    if not earlier:
        return _named(request, url, Names(key), key)
    settings = earlier[0]
    assert isinstance(settings, Settings), "read_log has seen to it"
    wanted = _named(request, url, Names(settings.key), settings.key)
    for what, is_same, remedy in (
        ("cluster", wanted.cluster == settings.cluster, "give the kubeconfig of that one"),
        ("namespace", wanted.namespace == settings.namespace, f"it was {settings.namespace or 'all of them'}"),
        ("--hash-names", request.with_hashed_names == bool(settings.key), "give it both times, or never"),
    ):
        if not is_same:
            raise InputError(request.out, problem=f"was recorded with another {what}", remedy=remedy)
    return settings


def _named(request: RecordingRequest, url: str, names: Names, key: str) -> Settings:
    return Settings(names.of("cluster", url), names.of("ns", request.namespace), key)


@contextlib.contextmanager
def _opened_log(folder: Path, settings: Settings, *, is_new: bool) -> Iterator[RecordingLog]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOG).open("ab")
    except OSError as error:
        raise InputError(folder, problem=f"cannot be written ({error.strerror})") from None
    with file:
        log = RecordingLog(file)
        if is_new:
            log.add(settings)
        yield log


def _manifest(node: NodeSighting) -> dict[str, object]:
    metadata: dict[str, object] = {"name": node.name}
    if node.labels:
        metadata["labels"] = node.labels
    spec: dict[str, object] = {"unschedulable": True} if node.is_cordoned else {}
    if node.taints:
        spec["taints"] = node.taints
    amounts = {resource: format_amount(resource, amount) for resource, amount in node.allocatable.items()}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": {"allocatable": amounts}}
