"""Logs of simulated containers: one line when the container starts, and one when it ends.

Options and errors are those of kube-apiserver and kubelet (Kubernetes: pkg/registry/core/pod/strategy.go, LogLocation;
pkg/kubelet/kubelet_pods.go, validateContainerLogStatus).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from batkube.api.requests import statuses
from batkube.api.requests.messages import TEXT, Response, Sink, Stream
from batkube.api.requests.methods import method_not_allowed
from batkube.api.validation import field_errors
from batkube.api.validation.problems import NOT_NEGATIVE
from batkube.api.verbs.handlers.object_request import ObjectRequest
from batkube.cluster.store import DELETED, Batch, Key, KubeObject, Store
from batkube.kernel.instants import NANOSECONDS_PER_SECOND, Instant, human_duration, instant_of, rfc3339
from batkube.kernel.numbers import parse_int

_NOT_POSITIVE = "must be greater than 0"
#: The log of a pod that is not assigned to a node.
EMPTY_LOG = Response(204, b"", "")


class LogLine(NamedTuple):
    """One line of a log."""

    at: Instant
    text: str


class ContainerLogs:
    """Handles requests for `pods/log`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        #: The streams that follow a log, by pod.
        self._followers: dict[Key, dict[LogStream, None]] = {}
        store.subscribe("pods", self._on_pods_changed)

    def handle(self, call: ObjectRequest) -> Response | Stream:
        """Return the requested log."""
        if call.route.verb != "get":
            raise method_not_allowed()
        pod = self._store.get("pods", Key(f"{call.route.namespace}/{call.route.name}"))
        if pod is None:
            raise statuses.not_found(call.resource, call.route.name)
        name = selected_container(call, pod)
        if not pod["spec"].get("nodeName"):
            return EMPTY_LOG
        lines = _log_lines(pod, name, previous=call.request.query_flag("previous"))
        text = _selected_text(call, lines)
        if call.request.query_flag("follow") and len(lines) == 1:
            return LogStream(self, pod, name, text, with_timestamps=call.request.query_flag("timestamps"))
        return Response(200, text.encode(), TEXT)

    def attach(self, key: Key, follower: LogStream) -> None:
        """Notify `follower` of changes of the pod."""
        self._followers.setdefault(key, {})[follower] = None

    def detach(self, key: Key, follower: LogStream) -> None:
        """Stop notifying `follower`."""
        self._followers.get(key, {}).pop(follower, None)
        if not self._followers.get(key, True):
            del self._followers[key]

    def _on_pods_changed(self, batch: Batch, now: Instant) -> None:
        if self._followers:
            for key, pod in zip(batch.keys, batch.objects, strict=True):
                for follower in list(self._followers.get(key, ())):
                    follower.on_pod_changed(pod, gone=batch.type is DELETED)


class LogStream:
    """A log that is followed to the end of the container's current run."""

    content_type = TEXT
    headers: tuple[tuple[str, str], ...] = ()
    buffered_bytes = 0
    has_pending_data = False

    def __init__(self, logs: ContainerLogs, pod: KubeObject, name: str, text: str, *, with_timestamps: bool) -> None:
        self._logs = logs
        self._key = Key(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
        self._name = name
        #: The log so far.
        self._text = text
        self._with_timestamps = with_timestamps
        self._started = _container_status(pod, name)["state"]["running"]["startedAt"]
        self._sink: Sink | None = None
        self.on_stopped: Callable[[], None] | None = None

    def start(self, sink: Sink) -> None:
        """Write the log so far, and follow it."""
        self._sink = sink
        self._logs.attach(self._key, self)
        if self._text:
            sink.write(self._text.encode())

    def resume(self) -> None:
        """Do nothing: single lines are never held back."""

    def stop(self) -> None:
        """Stop following the log."""
        self._sink = None
        self._logs.detach(self._key, self)
        if self.on_stopped is not None:
            self.on_stopped()
            self.on_stopped = None

    def on_pod_changed(self, pod: KubeObject, *, gone: bool) -> None:
        """Write the last line and end the stream if the run has ended."""
        status, sink = _container_status(pod, self._name), self._sink
        state = status.get("state", {})
        if sink is None or (state.get("running", {}).get("startedAt") == self._started and not gone):
            return
        ended = state.get("terminated") or status.get("lastState", {}).get("terminated")
        if ended is not None and ended["startedAt"] == self._started:
            last = _run_lines(pod, status, self._started, ended)[-1]
            sink.write(_format_lines([last], with_timestamps=self._with_timestamps).encode())
        self.stop()
        sink.close()


def selected_container(call: ObjectRequest, pod: KubeObject) -> str:
    """Return the container whose log is requested; raises Failure if it or an option is invalid."""
    # Kubernetes: pkg/apis/core/validation/validation.go, ValidatePodLogOptions.
    limits = {
        name: _parse_number(call.request.query_value(name)) for name in ("tailLines", "limitBytes", "sinceSeconds")
    }
    has_both_limits = limits["sinceSeconds"] is not None and bool(call.request.query_value("sinceTime"))
    minima = {"tailLines": (0, NOT_NEGATIVE), "limitBytes": (1, _NOT_POSITIVE), "sinceSeconds": (1, _NOT_POSITIVE)}
    problems = [
        field_errors.invalid(name, number, minima[name][1])
        for name, number in limits.items()
        if number is not None and number < minima[name][0] and not (name == "sinceSeconds" and has_both_limits)
    ]
    if has_both_limits:
        # Go's text of field.NewPath("").
        detail = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        problems.append(field_errors.forbidden("[]", detail))
    if problems:
        raise statuses.invalid_kind("", "PodLogOptions", call.route.name, problems)
    return _container_name(pod, call.request.query_value("container"))


_is_number = re.compile("-?[0-9]+").fullmatch
_MAX_INT64 = 2**63 - 1


def _parse_number(text: str) -> int | None:
    """Return the integer in a text, None if it is not one; integers beyond int64 are truncated."""
    if not _is_number(text):
        return None
    number = parse_int(text)
    return _MAX_INT64 if number is None else number


def _container_name(pod: KubeObject, container: str) -> str:
    """Return the named or only container; raises a 400 if it does not exist, or if several do and none is named."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    containers = [each["name"] for each in spec["containers"]]
    init = [each["name"] for each in spec.get("initContainers") or ()]
    existing = [*containers, *init, *(each["name"] for each in spec.get("ephemeralContainers") or ())]
    if container:
        if container not in existing:
            raise statuses.bad_request(f"container {container} is not valid for pod {name}")
        return container
    if len(containers) == 1 and not init:
        return str(containers[0])
    choices = " ".join([*init, *containers])
    raise statuses.bad_request(f"a container name must be specified for pod {name}, choose one of: [{choices}]")


def _log_lines(pod: KubeObject, name: str, *, previous: bool) -> list[LogLine]:
    """Return the log of the current or previous run of a container."""
    status = _container_status(pod, name)
    subject = f'container "{name}" in pod "{pod["metadata"]["name"]}"'
    if not status:
        raise statuses.bad_request(f"{subject} is not available")
    state, last = status["state"], status.get("lastState", {}).get("terminated")
    if previous:
        if last is None:
            raise statuses.bad_request(f"previous terminated {subject} not found")
        return _run_lines(pod, status, last["startedAt"], last)
    if "running" in state:
        return _run_lines(pod, status, state["running"]["startedAt"], None)
    ended = state.get("terminated") or last
    if ended is not None:
        return _run_lines(pod, status, ended["startedAt"], ended)
    reason = state.get("waiting", {}).get("reason", "ContainerCreating")
    raise statuses.bad_request(f"{subject} is waiting to start: {reason}")


def _container_status(pod: KubeObject, name: str) -> KubeObject:
    """Return the status of a container; an empty one if the kubelet has not reported any."""
    status = pod.get("status", {})
    statuses_ = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return next((each for each in statuses_ if each["name"] == name), {})


def _run_lines(pod: KubeObject, container: KubeObject, started: str, ended: KubeObject | None) -> list[LogLine]:
    location = f"{container['image']} on {pod['spec']['nodeName']}"
    begin = instant_of(started)
    lines = [LogLine(begin, f"batkube: simulated container {container['name']} ({location}) started")]
    if ended is not None:
        end = instant_of(ended["finishedAt"])
        ending = f"ended with exit code {ended['exitCode']} after {human_duration(end - begin)}"
        lines.append(LogLine(end, f"batkube: simulated container {container['name']} {ending}"))
    return lines


def _selected_text(call: ObjectRequest, lines: list[LogLine]) -> str:
    """Return the part of a log that the request's options select, as text."""
    option = call.request.query_value
    if (seconds := _parse_number(option("sinceSeconds"))) is not None:
        since = Instant(call.now - seconds * NANOSECONDS_PER_SECOND)
        lines = [line for line in lines if line.at >= since]
    elif option("sinceTime"):
        since = _parse_since(option("sinceTime"))
        lines = [line for line in lines if line.at >= since]
    if (count := _parse_number(option("tailLines"))) is not None:
        lines = lines[max(0, len(lines) - count) :]
    text = _format_lines(lines, with_timestamps=call.request.query_flag("timestamps"))
    limit = _parse_number(option("limitBytes"))
    return text if limit is None else text[:limit]


def _parse_since(text: str) -> Instant:
    try:
        return instant_of(text)
    except ValueError:
        # Go: time.Parse.
        raise statuses.bad_request(
            f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
        ) from None


def _format_lines(lines: list[LogLine], *, with_timestamps: bool) -> str:
    return "".join(f"{rfc3339(line.at) + ' ' if with_timestamps else ''}{line.text}\n" for line in lines)
