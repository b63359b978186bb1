"""The log of a recording: a JSON line per observation, written at once.

Workload and platform are computed from it, so an interrupted recording loses nothing, and a resumed one appends to the
same file.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import msgspec

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant
from batkube.workloads.model import Requests

LOG_FILE = "recording.jsonl"


class RecordingSettings(msgspec.Struct, frozen=True, tag="settings"):
    """The settings of a recording; the first line of the log."""

    #: The server's URL.
    cluster: str
    #: The namespace to which the recording is limited; "" for all.
    namespace: str
    #: The key that names are hashed with; "" for plain names.
    key: str


class SessionStart(msgspec.Struct, frozen=True, tag="begun"):
    """Recording started or resumed."""

    at: Instant
    #: The cluster's seconds per real second; more than 1 if it is simulated.
    speed: float = 1.0


class SessionEnd(msgspec.Struct, frozen=True, tag="ended"):
    """Recording stopped."""

    at: Instant


class PodDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The immutable properties of a pod."""

    name: str
    namespace: str
    #: metadata.creationTimestamp, in whole seconds.
    created: str
    requests: Requests
    priority: int
    scheduler: str
    image: str
    #: The uid of the Job that owns it; "" if none does.
    job: str
    #: Whether it belongs to its node (DaemonSet or static pod) and not to the workload.
    is_of_node: bool
    #: The names of its fields that constrain placement.
    placement: tuple[str, ...]


class PodObservation(msgspec.Struct, frozen=True, kw_only=True, tag="pod"):
    """A pod that was created, changed or deleted."""

    at: Instant
    uid: str
    #: Whether it was observed in a list, so the change happened earlier, at an unknown time.
    is_listed: bool
    is_gone: bool = False
    node: str = ""
    has_started: bool = False
    has_finished: bool = False
    started_at: str = ""
    finished_at: str = ""
    exit_code: int = 0
    #: Only in the first observation.
    description: PodDescription | None = None


class NodeObservation(msgspec.Struct, frozen=True, kw_only=True, tag="node"):
    """A node that was created, changed or deleted."""

    at: Instant
    name: str
    is_gone: bool = False
    allocatable: dict[str, int] = {}
    labels: dict[str, str] = {}
    taints: tuple[dict[str, str], ...] = ()
    is_cordoned: bool = False


class JobObservation(msgspec.Struct, frozen=True, tag="job"):
    """A batch/v1 Job that was created."""

    at: Instant
    uid: str
    name: str
    #: spec.parallelism and spec.completions, with defaults.
    parallelism: int
    completions: int


Line = RecordingSettings | SessionStart | SessionEnd | PodObservation | NodeObservation | JobObservation
_decode = msgspec.json.Decoder(Line).decode


class RecordingLog:
    """A log that is open for appending."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def append(self, line: Line) -> None:
        """Write a line and flush it, so that no crash of this process loses it."""
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()


def read_log(path: Path) -> list[Line]:
    """Return the lines of a log, without an incomplete last one. Raises InputError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}") from None
    lines: list[Line] = []
    for number, text in enumerate(content.split(b"\n")[:-1], 1):
        try:
            lines.append(_decode(text))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InputError(path, at=f"line {number}", problem=f"is not a line of a recording: {error}") from None
    if not lines or not isinstance(lines[0], RecordingSettings):
        raise InputError(path, problem="is not a recording", remedy="choose another folder")
    if len(lines) > 1 and not isinstance(lines[1], SessionStart):
        raise InputError(path, at="line 2", problem="is not the beginning of a session", remedy="choose another folder")
    return lines


def truncate_partial_line(path: Path) -> None:
    """Remove an incomplete last line."""
    with path.open("r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)
