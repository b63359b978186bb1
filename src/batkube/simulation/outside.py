"""Outside schedulers: real programs on the run's clock, talking to the run's own API server."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from batkube.api.assembly import Api
from batkube.api.authentication import MASTERS, authenticated
from batkube.api.messages import Request, Response, Stream
from batkube.api.polling import PolledServer
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.store import Store
from batkube.kernel.agenda import Agenda
from batkube.kernel.clock import Clock
from batkube.kernel.documents import read_yaml
from batkube.kernel.errors import InputError
from batkube.kernel.instants import UNIX_START
from batkube.kernel.streams import Streams
from batkube.simulation.attached import Coordinated, OutsideScheduler
from batkube.simulation.attempts import AttemptLog
from batkube.simulation.scenario import Scenario
from batkube.simulation.witness import Witness
from batkube.timing.coordinator import Attachment, Coordinator
from batkube.timing.costs import ZERO, DecisionCost, MeasuredCost, ModelledCost, parse_cost
from batkube.timing.page import ClockPage
from batkube.timing.processes import AttachedProcess

EPOCH_NS = -int(UNIX_START)


class NoTimers:
    """Watches in a run never end by themselves and need no bookmarks: connections do not break, and nothing is lost."""

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Never call."""
        return _nothing


def _nothing() -> None:
    """Cancel what will not happen."""


class _Gate:
    """Lets in who knows the secret part of the path; client-go sends tokens over TLS only, which a run does without."""

    def __init__(self, api: Api, secret: str, token: str) -> None:
        self._api = api
        self._prefix = f"/{secret}"
        self._authorization = f"Bearer {token}"

    def handle(self, request: Request) -> Response | Stream:
        """Answer a request below the secret path as the administrator's."""
        if request.path.startswith(self._prefix + "/"):
            request.path = request.path[len(self._prefix) :]
            request.headers["authorization"] = self._authorization
        return self._api.handle(request)

    def too_large(self) -> Response:
        """Answer a request whose body is larger than is taken."""
        return self._api.too_large()


def coordinate(
    schedulers: Sequence[OutsideScheduler],
    scenario: Scenario,
    store: Store,
    clock: Clock,
    agenda: Agenda,
    streams: Streams,
    witness: Witness,
    folder: Path,
) -> Coordinated:
    """Start the schedulers of a run on its clock, before the first job arrives."""
    api, token = make_api(store, clock, streams)
    attachments: list[Attachment] = []
    try:
        for number, scheduler in enumerate(schedulers):
            own_folder = folder / scheduler.serves if number else folder
            own_folder.mkdir(parents=True, exist_ok=True)
            attachments.append(_attach(scheduler, api, token, own_folder, clock, scenario, store))
    except InputError:
        Coordinator(clock, agenda, attachments, EPOCH_NS).stop()
        raise
    logs = [AttemptLog(attachment.process.log, witness.hear_attempt) for attachment in attachments]
    return Coordinated(Coordinator(clock, agenda, attachments, EPOCH_NS), attachments, logs, witness)


def make_api(store: Store, clock: Clock, streams: Streams) -> tuple[Api, str]:
    """Return the API server of a run, and the administrator's token."""
    token = secrets.token_urlsafe()
    users = {token: authenticated("admin", "admin", (MASTERS,))}
    api = Api(store, lambda: clock.now, NoTimers(), streams, users, bare=True)
    api.bootstrap(clock.now, 6443)
    return api, token


def _attach(
    scheduler: OutsideScheduler, api: Api, token: str, folder: Path, clock: Clock, scenario: Scenario, store: Store
) -> Attachment:
    """Start a scheduler with its own connection to the API; its files go into `folder`."""
    secret = secrets.token_urlsafe()
    server = PolledServer(_Gate(api, secret, token))
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(_kubeconfig(f"http://127.0.0.1:{server.port}/{secret}"))
    kubeconfig.chmod(0o600)
    configuration = folder / "configuration.yaml"
    configuration.write_text(_configuration(scheduler, kubeconfig))
    page = ClockPage(clock.now + EPOCH_NS, deterministic=scenario.deterministic, seed=scenario.seed)
    command = _command(scheduler, configuration)
    # Without TZ, Go would log in the machine's own time zone.
    try:
        process = AttachedProcess(scheduler.name, command, page, folder / "log.txt", {"TZ": "UTC"})
    except InputError:
        server.close()
        raise
    return Attachment(process, server, _cost(scenario, process, store), scenario.watchdog)


def _cost(scenario: Scenario, process: AttachedProcess, store: Store) -> DecisionCost | None:
    if scenario.decision_cost == ZERO:
        return None
    model = parse_cost(scenario.decision_cost)
    if model is None:
        return MeasuredCost(process.cpu_ns)
    return ModelledCost(
        model,
        nodes=lambda: len(store.entries(NODE)),
        pending_pods=lambda: sum("nodeName" not in pod["spec"] for pod, _ in store.entries(POD).values()),
    )


def _command(scheduler: OutsideScheduler, configuration: Path) -> Sequence[str]:
    return [str(scheduler.binary), f"--config={configuration}", "--secure-port=0", "--v=2", *scheduler.arguments]


def _kubeconfig(server: str) -> str:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "batkube", "cluster": {"server": server}}],
        "users": [{"name": "batkube", "user": {}}],
        "contexts": [{"name": "batkube", "context": {"cluster": "batkube", "user": "batkube"}}],
        "current-context": "batkube",
    }
    return yaml.safe_dump(content, sort_keys=False)


def _configuration(scheduler: OutsideScheduler, kubeconfig: Path) -> str:
    """Return the user's configuration with our kubeconfig, and without leader election unless it asks for it."""
    given = scheduler.configuration
    content: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    if given is not None:
        content = read_configuration(given)
    elif scheduler.serves:
        content["profiles"] = [{"schedulerName": scheduler.serves}]
    connection = {**(content.get("clientConnection") or {}), "kubeconfig": str(kubeconfig)}
    election = {"leaderElect": False, **(content.get("leaderElection") or {})}
    return yaml.safe_dump({**content, "clientConnection": connection, "leaderElection": election}, sort_keys=False)


def read_configuration(path: Path) -> dict[str, Any]:
    """Return the content of a KubeSchedulerConfiguration file. Raises InputError."""
    content = read_yaml(path)
    if not isinstance(content, dict) or content.get("kind") != "KubeSchedulerConfiguration":
        raise InputError(
            path,
            problem="is not a KubeSchedulerConfiguration",
            remedy="give a file whose kind is KubeSchedulerConfiguration (kubescheduler.config.k8s.io)",
        )
    try:
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(content))
    except (TypeError, msgspec.EncodeError) as problem:
        raise InputError(path, problem=str(problem)) from problem
    return plain
