"""`batkube serve`: an API server with a simulated cluster behind it, in real time.

This module connects the server, the cluster and the event loop, which do not depend on one another.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import secrets
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from batkube.api.access.authenticator import read_token_file
from batkube.api.access.serving_certificates import new_server_credentials
from batkube.api.admission.built_in.quota_usage import quota_usage_calculator
from batkube.api.assembly import Api, DescriptionSources
from batkube.api.connections.event_loop.listener import DualListener, listen_dual
from batkube.api.connections.event_loop.server_connections import EventLoopTimers
from batkube.api.connections.event_loop.webhook_transport import WebhookThreads, call_webhook
from batkube.api.requests.users import MASTERS, authenticated_user
from batkube.api.verbs.handlers.logs import ContainerLogs
from batkube.cluster.kinds import DEFAULT_API, ServedApi
from batkube.cluster.kubeconfigs import kubeconfig
from batkube.cluster.mapping import ANNOTATION_SPEED
from batkube.cluster.pods.usage import PodUsage
from batkube.cluster.store import Store
from batkube.cluster.world import World
from batkube.components.access import Access
from batkube.components.cluster import KubeletOptions, start_cluster, start_scheduler
from batkube.components.controllers import ControllerContext
from batkube.components.nodes import NodeCreator
from batkube.execution.latencies.delays import NO_DELAYS, Delays, Latencies
from batkube.execution.nodes.registration import CONTROL_PLANE
from batkube.files.private import write_private
from batkube.files.replacement import write_atomically
from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote
from batkube.kernel.stopwatch import wall_clock_instant
from batkube.kernel.streams import Streams
from batkube.outputs.files.folder import OutputFolder
from batkube.outputs.files.manifest import to_json, write_json
from batkube.outputs.writers.nodes_csv import write_nodes
from batkube.platforms.manifests import JOB_NOTES
from batkube.platforms.model import Platform
from batkube.policies.interface import Policy
from batkube.policies.runtime.policy_scheduler import PolicyChoice
from batkube.programs.program import ExternalProgram
from batkube.scenarios.scenario import CONTROLLER_MANAGER
from batkube.schedulers.column_descriptions import read_column_descriptions
from batkube.schedulers.field_descriptions import read_field_descriptions
from batkube.schedulers.installed import cache_folder
from batkube.serving.bug_reports import BugReports
from batkube.serving.compaction import Compaction
from batkube.serving.controller_manager_process import LOG_FILE, ControllerManagerProcess
from batkube.serving.garbage_collector import IdleGarbageCollector
from batkube.serving.log_limit import rate_limited_log
from batkube.serving.shutdown import Shutdown
from batkube.timing.live import LiveTime
from batkube.timing.loop import Loop
from batkube.version import __version__
from batkube.workloads.container_rules.rules import ContainerRule, ContainerRules

KUBECONFIG, FIDELITY, NODES = "kubeconfig", "fidelity.json", "nodes.csv"
#: The number of changes that are kept for watches; a client that lags further behind must list again.
_HISTORY = 100_000
#: The maximum memory of these changes.
_HISTORY_BYTES = 256 * 1024 * 1024
_SIZE_SAMPLING = 8

_RUN_ONLY_LATENCIES = FidelityNote("latencies", "keys that only `batkube run` supports were ignored")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Options of `batkube serve`."""

    #: None to serve the API alone: no nodes, kubelets, controllers or scheduler.
    platform: Platform | None
    out: Path
    force: bool = False
    host: str = "127.0.0.1"
    #: 0 for any free port.
    port: int = 0
    #: Virtual seconds per real second.
    speed: float = 1.0
    #: The policy that binds pods, True for one that works like kube-scheduler, False for none.
    scheduler: Policy | bool = True
    #: Whether to run Batkube's controllers; otherwise `manager`, if set.
    controllers: bool = True
    manager: ExternalProgram | None = None
    latencies: Latencies | None = None
    #: Rules for the behaviour of containers.
    rules: tuple[ContainerRule, ...] = ()
    token_file: Path | None = None
    #: API versions to enable in addition to the default ones.
    api: ServedApi = DEFAULT_API
    seed: int = 0
    #: Whether to log a bug and continue, instead of shutting down.
    keep_going: bool = False
    #: The command line, for the manifest.
    command: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """The address of the server, and the credentials of its administrator."""

    url: str
    kubeconfig: Path
    token: str


def serve(
    options: ServeOptions, announce: Callable[[Address], None], observe: Callable[[World], None] | None = None
) -> None:
    """Serve until interrupted. Calls `announce` once requests are accepted and the kubeconfig is written.

    Before that, `observe` is called with the world of the cluster, which it must not change.
    A bug shuts the service down and is raised, unless `keep_going` is set.
    """
    cluster = ServedCluster(options, observe)
    with rate_limited_log(), cluster.shutdown.handling_signals():
        try:
            cluster.shutdown.run(cluster.run(announce))
        finally:
            if cluster.shutdown.has_started:
                cluster.write_final_files()


class ServedCluster:
    """A served cluster: its world, its users and its output folder."""

    def __init__(self, options: ServeOptions, observe: Callable[[World], None] | None = None) -> None:
        self._options = options
        self._observe = observe
        self._folder = OutputFolder(options.out, force=options.force)
        self._users = {} if options.token_file is None else read_token_file(options.token_file)
        master = next((token for token, user in self._users.items() if user.is_master), None)
        self._token = secrets.token_urlsafe(32) if master is None else master
        self._users.setdefault(self._token, authenticated_user("admin", "", (MASTERS,)))
        store = Store(_HISTORY, _HISTORY_BYTES, sampling_interval=_SIZE_SAMPLING)
        self._world = World(Streams(options.seed), store=store)
        self._rules = ContainerRules(options.rules, self._world.streams)
        self.shutdown = Shutdown()
        self._bugs = BugReports(self.shutdown.fail, self._world.notes, keep_going=options.keep_going)

    def write_final_files(self) -> None:
        """Write the nodes with their times, and the final fidelity notes."""
        machines = self._world.machines
        write_nodes(self._folder.path / NODES, machines.machines, machines.presence)
        self._rules.note_unused(self._world.notes)
        write_atomically(self._folder.path / FIDELITY, to_json(self._world.notes.rows()))

    async def run(self, announce: Callable[[Address], None]) -> None:
        """Serve until shutdown is requested."""
        options, world, start = self._options, self._world, wall_clock_instant()
        if options.latencies is not None and options.latencies.run_only_keys:
            world.notes.add(_RUN_ONLY_LATENCIES, example=", ".join(options.latencies.run_only_keys))
        if options.platform is not None:
            for note, count in options.platform.notes:
                if note not in JOB_NOTES:
                    world.notes.add(note, example=options.platform.source, count=count)
        on_bug = self._bugs.report if options.keep_going else None
        time = LiveTime(world, Loop(world, on_bug), start, options.speed)
        credentials = new_server_credentials(options.host, start)
        # Container usage for metrics and logs; None if only the API is served.
        usage = None if options.platform is None else PodUsage(world.store, self._rules, world.clock.now)
        threads = WebhookThreads(asyncio.get_running_loop())
        api = self._api(time, usage, threads)
        listener = _listen(api, options, credentials.tls_context, threads)
        try:
            host = f"{_client_host(options.host)}:{listener.port}"
            api.set_address(host)
            self._start_cluster(api, usage, credentials.ca_certificate.decode(), listener.port)
            if self._observe is not None:
                self._observe(world)
            loop, store = asyncio.get_running_loop(), world.store
            collector = IdleGarbageCollector(loop, lambda: store.version + store.oldest_version + listener.activity)
            compaction = Compaction(loop, store)
            with self._bugs.installed(loop), time.running(), collector.running(), compaction.running():
                authority = base64.b64encode(credentials.ca_certificate).decode()
                cluster = {"server": f"https://{host}", "certificate-authority-data": authority}
                access = kubeconfig(cluster, "admin", {"token": self._token})
                _write_folder(self._folder, options, access, world)
                announce(Address(f"https://{host}", self._folder.path / KUBECONFIG, self._token))
                await self._wait_for_shutdown()
        finally:
            await listener.close()

    def _api(self, time: LiveTime, usage: PodUsage | None, threads: WebhookThreads) -> Api:
        options, world, loop = self._options, self._world, asyncio.get_running_loop()
        is_bare = options.platform is None
        return Api(
            world.store,
            time.now,
            EventLoopTimers(loop),
            world.streams,
            self._users,
            bare=is_bare,
            usage=usage,
            specials={} if is_bare else {"pods/log": ContainerLogs(world.store).handle},
            notes=world.notes,
            kinds=options.api,
            descriptions=DescriptionSources(
                types=functools.partial(read_field_descriptions, cache=cache_folder()),
                columns=functools.partial(read_column_descriptions, cache=cache_folder()),
            ),
            call_webhook=call_webhook,
            interruption=(world.suspension, threads.run),
            on_bug=self._bugs.report,
        )

    def _start_cluster(self, api: Api, usage: PodUsage | None, authority: str, port: int) -> None:
        """Start controllers, kubelets and the scheduler, then create the default objects and the nodes."""
        options, world = self._options, self._world
        if options.platform is None or usage is None:
            api.bootstrap(world.clock.now, port, "")
            return
        context = None
        if options.controllers:
            scales = api.manifest_client(self._token, CONTROLLER_MANAGER)
            context = ControllerContext(quota_usage_calculator(), usage, scales, api.long_lived_token, authority)
        delays = NO_DELAYS if options.latencies is None else Delays(options.latencies, world.streams)
        access = Access.of_world(world, api.client)
        registrar = start_cluster(world, access, KubeletOptions(delays=delays, rules=self._rules), context)
        assert registrar is not None, "the nodes of a served cluster have kubelets"
        if options.scheduler:
            policy = None if options.scheduler is True else options.scheduler
            choice = None if policy is None else PolicyChoice(policy, world.streams.named("policy"))
            start_scheduler(world, access, choice)
        api.bootstrap(world.clock.now, port, CONTROL_PLANE)
        # `batkube emulate` reads this to convert seconds of this cluster.
        annotations = {} if options.speed == 1 else {ANNOTATION_SPEED: f"{options.speed:g}"}
        NodeCreator(access).register(options.platform.machines, registrar, world.clock.now, annotations)

    async def _wait_for_shutdown(self) -> None:
        """Wait until shutdown is requested; run kube-controller-manager until then, if selected."""
        program, folder = self._options.manager, self._folder.path
        if program is None:
            await self.shutdown.wait()
            return
        manager = ControllerManagerProcess(program, (folder / KUBECONFIG).resolve(), folder / LOG_FILE)
        with manager.running():
            tasks = [asyncio.ensure_future(self.shutdown.wait()), asyncio.ensure_future(manager.wait_for_exit())]
            done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()
            for task in done:
                task.result()


def _listen(api: Api, options: ServeOptions, tls: ssl.SSLContext, threads: WebhookThreads) -> DualListener:
    try:
        return listen_dual(api, options.host, options.port, tls, threads)
    except OSError as error:
        raise InputError(
            f"{options.host}:{options.port}",
            problem=f"cannot listen on this address: {error.strerror or error}",
            remedy="choose another --port, or omit it to use any free port",
        ) from error


def _client_host(host: str) -> str:
    """Return the address for clients on this machine: the loopback address instead of a wildcard address."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host


def _write_folder(folder: OutputFolder, options: ServeOptions, access: str, world: World) -> None:
    """Write the output folder: the kubeconfig, readable only by its owner, the nodes, the notes and the manifest."""
    with folder.writing():
        write_private(folder.file(KUBECONFIG), access)
        write_nodes(folder.file(NODES), world.machines.machines, world.machines.presence)
        write_json(folder.file(FIDELITY), world.notes.rows())
        manifest = {
            "batkube": __version__,
            "command": list(options.command),
            "serves": None if options.platform is None else options.platform.source,
            "nodes": 0 if options.platform is None else len(options.platform.machines),
            "speed": options.speed,
            "seed": options.seed,
        }
        # kubectl edits its kubeconfig (`kubectl config set-context`); nodes and notes are rewritten at the end.
        mutable = [KUBECONFIG, FIDELITY, NODES]
        if options.manager is not None:
            folder.file(LOG_FILE).touch()
            mutable.append(LOG_FILE)
        folder.seal(manifest, mutable_files=mutable)
