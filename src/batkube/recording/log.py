"""The log of a recording: what was seen, a line of JSON each, written as soon as it is seen.

Everything else is computed from it. So a recording that is cut short by anything has lost nothing, and one that goes on
later appends to the same file.
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
    """What is recorded, and how; the first line."""

    #: Where the server is.
    cluster: str
    #: The only namespace that is recorded; "" for all.
    namespace: str
    #: What names are hashed with; "" where they are written as they are.
    key: str


class SessionStart(msgspec.Struct, frozen=True, tag="begun"):
    """Recording started or resumed."""

    at: Instant
    #: The cluster's seconds per real second, which is more than 1 on a simulated one.
    speed: float = 1.0


class SessionEnd(msgspec.Struct, frozen=True, tag="ended"):
    """Recording stopped."""

    at: Instant


class PodDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The immutable properties of a pod."""

    name: str
    namespace: str
    #: When the API server says it was created: whole seconds.
    created: str
    requests: Requests
    priority: int
    scheduler: str
    image: str
    #: The uid of the Job that made it; "" if none did.
    job: str
    #: Whether it belongs to its node (a DaemonSet's, or a static pod) and not to the load.
    is_of_node: bool
    #: The fields that say where it may go.
    placement: tuple[str, ...]


class PodObservation(msgspec.Struct, frozen=True, kw_only=True, tag="pod"):
    """A pod that came, changed or went."""

    at: Instant
    uid: str
    #: Whether it was come upon in a list: what is seen has happened some time before.
    is_listed: bool
    is_gone: bool = False
    node: str = ""
    has_started: bool = False
    has_finished: bool = False
    started_at: str = ""
    finished_at: str = ""
    exit_code: int = 0
    #: At its first sighting only.
    description: PodDescription | None = None


class NodeObservation(msgspec.Struct, frozen=True, kw_only=True, tag="node"):
    """A node that came, changed or went."""

    at: Instant
    name: str
    is_gone: bool = False
    allocatable: dict[str, int] = {}
    labels: dict[str, str] = {}
    taints: tuple[dict[str, str], ...] = ()
    is_cordoned: bool = False


class JobObservation(msgspec.Struct, frozen=True, tag="job"):
    """A batch/v1 Job that came."""

    at: Instant
    uid: str
    name: str
    #: How many pods it wants at once, and to succeed.
    parallelism: int
    completions: int


Line = RecordingSettings | SessionStart | SessionEnd | PodObservation | NodeObservation | JobObservation
_decode = msgspec.json.Decoder(Line).decode


class RecordingLog:
    """The file, open for more lines."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def append(self, line: Line) -> None:
        """Write a line, so that it is there whatever becomes of us."""
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()


def read_log(path: Path) -> list[Line]:
    """Return the lines of a log. A last one that was cut off in the middle is none. Raises InputError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(path, problem=f"cannot be read: {error.strerror}") from None
    lines: list[Line] = []
    for number, text in enumerate(content.split(b"\n")[:-1], 1):
        try:
            lines.append(_decode(text))
        except msgspec.MsgspecError as error:
            raise InputError(path, at=f"line {number}", problem=f"is no line of a recording: {error}") from None
    if not lines or not isinstance(lines[0], RecordingSettings):
        raise InputError(path, problem="is not a recording", remedy="choose another folder")
    return lines


def truncate_partial_line(path: Path) -> None:
    """Remove what stands behind the last whole line."""
    with path.open("r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)
