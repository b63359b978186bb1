"""Starts external programs on the run's clock, each with its own connection to the run's API server."""

from __future__ import annotations

import functools
import hmac
import logging
import random
import re
import secrets
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from batkube.api.assembly import Api
from batkube.api.connections.polled.program_listener import ProgramListener
from batkube.api.connections.polled.server import PolledServer
from batkube.api.connections.polled.transmission import DisturbedPieces, Transmission, WholePieces
from batkube.api.connections.protocol.connection import MAX_BODY_BYTES, Handler
from batkube.api.requests.messages import Request, Response, Stream
from batkube.api.requests.users import MASTERS, authenticated_user
from batkube.api.verbs.handlers.objects import PATH_NOT_FOUND
from batkube.cluster.kinds import DEFAULT_API, ServedApi
from batkube.cluster.mapping import NODE, POD
from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.store import Store
from batkube.cluster.world import World
from batkube.kernel.errors import InputError
from batkube.kernel.instants import UNIX_START, Instant, as_float_s
from batkube.programs.observation.conflicts import SchedulerConflicts
from batkube.programs.program import ExternalProgram, ProgramSetup, RunServer
from batkube.programs.startup.command_lines import command_line, served_scheduler_names
from batkube.programs.startup.environment import PROXY_PORT, environment_of, uses_proxy
from batkube.programs.startup.extenders import EXTENDERS_PATH, MAX_REQUEST, ExtenderProxy, extender_urls
from batkube.programs.startup.program_folders import StableFolders
from batkube.programs.time_driver import CoordinatedTimeDriver
from batkube.scenarios.disturbances import Disturbance
from batkube.scenarios.scenario import Scenario
from batkube.schedulers.clocks import ClockKind
from batkube.schedulers.installed import cache_folder
from batkube.timing.coordinator import Attachment, Coordinator
from batkube.timing.costs import ZERO, DecisionCost, MeasuredCost, ModelledCost, parse_cost
from batkube.timing.loop import ExternalHorizon
from batkube.timing.pages.clock_page import ClockPage
from batkube.timing.pages.interruptions import HeadStart, Interruptions
from batkube.timing.pages.session_page import SessionPage
from batkube.timing.processes.attached_process import AttachedProcess
from batkube.timing.processes.program_log import ProgramLog
from batkube.timing.time_rules import TimeMode

EPOCH_NS = -int(UNIX_START)
#: The path of a namespaced or cluster-wide resource.
_OBJECTS = re.compile(r"/apis/([^/]+/[^/]+)/(?:namespaces/[^/]+/)?([^/]+)")

_log = logging.getLogger(__name__)


class NoTimers:
    """Timers that never fire: watches of a run need neither timeouts nor bookmarks, because connections do not fail."""

    def after(self, seconds: float, callback: Callable[[], None]) -> Callable[[], None]:
        """Ignore the callback."""
        return _cancel_nothing


def _cancel_nothing() -> None:
    """Do nothing: the timer does not exist."""


class _ProgramGate:
    """Authenticates the requests of one program by a secret path prefix, since client-go sends tokens only over TLS.

    An open gate needs no secret, like `kubectl proxy`: the listener accepts connections of the program only.
    """

    def __init__(
        self, server: RunServer, program: str, secret: str, extenders: ExtenderProxy, *, is_open: bool = False
    ) -> None:
        self._api = server.api
        self._program = program
        self._conflicts = server.conflicts
        self._is_open = is_open
        self._extenders = extenders
        self._prefix = f"/{secret}"
        self._authorization = f"Bearer {server.token}"
        self._unknown_kinds = server.unknown_kinds

    def handle(self, request: Request) -> Response | Stream:
        """Handle a request; one below the secret path has the administrator's permissions."""
        # Constant-time comparison: the duration must not reveal a partial match.
        end = len(self._prefix)
        if hmac.compare_digest(request.path[: end + 1].encode(), f"{self._prefix}/".encode()):
            request.path = request.path[end:]
            if request.path.startswith(EXTENDERS_PATH):
                return self._extenders.forward(request)
            request.headers["authorization"] = self._authorization
        elif self._is_open:
            request.headers.setdefault("authorization", self._authorization)
        response = self._api.handle(request)
        if response is PATH_NOT_FOUND:
            self._note_unknown(request.path)
        if self._conflicts is not None and isinstance(response, Response):
            self._conflicts.record_response(self._program, request.method, request.path, response.status)
        return response

    def _note_unknown(self, path: str) -> None:
        """Record a requested kind that does not exist. Discovery requests for whole groups do not count."""
        match = _OBJECTS.match(path)
        kind = f"{match[2]} of {match[1]}" if match else ""
        if kind and kind not in self._unknown_kinds:
            self._unknown_kinds.append(kind)

    def too_large(self) -> Response:
        """Return the response to a request whose body exceeds the limit."""
        return self._api.too_large()


def start_coordinated(setup: ProgramSetup, horizon: ExternalHorizon | None = None) -> CoordinatedTimeDriver:
    """Start the programs of a run, and return their time driver. Programs start before the first job arrives."""
    attachments = start_all(
        setup,
        lambda program, folder: _start_attached(program, setup, folder),
        lambda started: Coordinator(started, EPOCH_NS).stop(),
    )
    return CoordinatedTimeDriver(setup.world, attachments, setup.observer, setup.scenario.patience, EPOCH_NS, horizon)


_Started = TypeVar("_Started")


def start_all(
    setup: ProgramSetup,
    start: Callable[[ExternalProgram, Path], _Started],
    stop: Callable[[list[_Started]], None],
) -> list[_Started]:
    """Start every program in its own folder; if one fails to start, stop those already started."""
    started: list[_Started] = []
    try:
        for program in setup.programs:
            folder = setup.folder / program.folder
            folder.mkdir(parents=True, exist_ok=True)
            started.append(start(program, folder))
    except BaseException:
        stop(started)
        raise
    return started


def make_server(
    world: World,
    usage: PodUsage | None = None,
    api: ServedApi = DEFAULT_API,
    conflicts: SchedulerConflicts | None = None,
) -> RunServer:
    """Return the API server of a run, which serves `api` and reports bindings to `conflicts`.

    `usage` calculates the resource usage of pods.
    """
    token = secrets.token_urlsafe()
    users = {token: authenticated_user("admin", "admin", (MASTERS,))}
    clock = world.clock
    parts = Api(
        world.store,
        lambda: clock.event_time,
        NoTimers(),
        world.streams,
        users,
        bare=True,
        usage=usage,
        notes=world.notes,
        kinds=api,
        # The pods of a workload job share one demand.
        can_resize=lambda key: world.executions.find(key) is None,
    )
    parts.bootstrap(clock.now, 6443)
    return RunServer(parts, token, [], conflicts)


def _start_attached(scheduler: ExternalProgram, setup: ProgramSetup, folder: Path) -> Attachment:
    """Start a program on the run's clock. Only decisions of schedulers may cost virtual time."""
    has_extenders = any(extender_urls(scheduler.configuration))
    listen = functools.partial(
        PolledServer,
        max_body=MAX_REQUEST if has_extenders else MAX_BODY_BYTES,
        transmission=_transmission(setup.scenario),
    )
    process, api_server = start_program(scheduler, listen, setup, folder)
    api_server.page = process.page
    if Disturbance.SLOW_PROGRAM in setup.scenario.disturb:
        process.interruptions = Interruptions(process.pid, _unseeded_random())
    if Disturbance.WAKE_UPS in setup.scenario.disturb:
        process.page.head_start = HeadStart(_unseeded_random())
    cost = _decision_cost(setup.scenario, process, setup.world.store) if served_scheduler_names(scheduler) else None
    return Attachment(process, api_server, cost, setup.scenario.watchdog)


def _transmission(scenario: Scenario) -> Transmission:
    """Return how the server sends its responses: in whole pieces, unless the scenario disturbs them."""
    late, cut, pause = (
        disturbance in scenario.disturb
        for disturbance in (Disturbance.SLOW_SERVER, Disturbance.CUTS, Disturbance.PAUSES)
    )
    if not (late or cut or pause):
        return WholePieces()
    return DisturbedPieces(_unseeded_random(), late=late, cut=cut, pause=pause)


def _unseeded_random() -> random.Random:
    """Return a generator with a different seed in every run: disturbances must not change results."""
    return random.Random(secrets.randbits(64))


class ProgramServer(Protocol):
    """The API server of one program."""

    #: TLS settings; None without TLS.
    tls: ssl.SSLContext | None

    def close(self) -> None:
        """Stop listening."""


_Server = TypeVar("_Server", bound=ProgramServer)


def start_program(
    scheduler: ExternalProgram,
    listen: Callable[[Handler, ProgramListener], _Server],
    setup: ProgramSetup,
    folder: Path,
) -> tuple[AttachedProcess, _Server]:
    """Start a program with its own connection to the API, and return both; its files go into `folder`."""
    scenario, server = setup.scenario, setup.server
    secret = secrets.token_urlsafe()
    is_exact = scenario.time.mode is TimeMode.EXACT
    extenders = ExtenderProxy(extender_urls(scheduler.configuration) if is_exact else [], as_float_s(scenario.watchdog))
    listener, is_open = _listener(scheduler, secret), uses_proxy(scheduler)
    api_server = listen(_ProgramGate(server, scheduler.folder, secret, extenders, is_open=is_open), listener)
    log = ProgramLog(folder / "log.txt")
    folders = StableFolders(folder, cache_folder(), inherits=scheduler.start.clock is ClockKind.GO)
    try:
        command = command_line(scheduler, folders.files, listener.port, secret, extenders)
        environment = environment_of(
            scheduler, folders.files, folders.temporary, listener.port, scenario.seed, server.token
        )
        api_server.tls = environment.tls
        page = _clock_page(scheduler, setup.world.clock.now, listener.port, scenario, log)
        _log.info("started %s: %s, with its files in %s", scheduler.name, command[0], folder)
        process = AttachedProcess(
            scheduler.name, command, page, log, environment.variables, environment.prepare, folders.descriptors
        )
    except InputError:
        log.close()
        api_server.close()
        folders.release()
        raise
    finally:
        folders.close_descriptors()
    process.release = folders.release
    listener.allow(process.pid, lambda: page.connect_count)
    return process, api_server


def _listener(scheduler: ExternalProgram, secret: str) -> ProgramListener:
    """Open a listener for a program, at the fixed port if the program expects one."""
    port = scheduler.start.proxy_port
    try:
        return ProgramListener(secret, port)
    except OSError as error:
        raise InputError(
            f"program {scheduler.name!r}",
            problem=f"expects the API at port {port}, which is in use: {error.strerror}",
            remedy="stop the process that uses the port, such as another run",
        ) from error


def _clock_page(scheduler: ExternalProgram, now: Instant, port: int, scenario: Scenario, log: ProgramLog) -> ClockPage:
    """Create the clock page of a program; a program on real time does not read it."""
    kind = scheduler.start.clock
    if kind in (ClockKind.GO, ClockKind.REAL):
        return ClockPage(now + EPOCH_NS, deterministic=scenario.deterministic, seed=scenario.seed, port=port)
    return SessionPage(
        now + EPOCH_NS,
        deterministic=scenario.deterministic,
        seed=scenario.seed,
        port=port,
        # The preloaded library redirects this port to the real one, so several runs can use it at once.
        proxy_port=PROXY_PORT if kind is ClockKind.PRELOAD else 0,
        drain=log.drain,
    )


def _decision_cost(scenario: Scenario, process: AttachedProcess, store: Store) -> DecisionCost | None:
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
