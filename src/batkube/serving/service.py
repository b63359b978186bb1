"""`batkube serve`: an API server, and behind it a simulated cluster that lives in real time.

This is the only place that knows the server, the cluster and the event loop; each of them works without the others.
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

from batkube.api.access.authentication import read_token_file
from batkube.api.access.certificates import make_credentials
from batkube.api.admission.usage import usage_by_storage
from batkube.api.assembly import Api
from batkube.api.connections.http import LoopTimers
from batkube.api.connections.listening import DualListener, listen_both
from batkube.api.connections.outside_calls import ask, do_apart
from batkube.api.requests.users import MASTERS, User, authenticated
from batkube.api.verbs.logs import Logs
from batkube.cluster.courses import Courses
from batkube.cluster.kubeconfigs import kubeconfig
from batkube.cluster.mapping import ANNOTATION_SPEED
from batkube.cluster.pod_use import PodUse
from batkube.cluster.store import Store
from batkube.cluster.world import World
from batkube.components.cluster import PolicyChoice, register_nodes, start_cluster, start_scheduler
from batkube.components.controllers import ControllerContext
from batkube.execution.latencies import Delays, Latencies
from batkube.execution.node_agents import CONTROL_PLANE, NodeAgents
from batkube.kernel.errors import InputError
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.private_files import write_private
from batkube.kernel.replacing import write_whole
from batkube.kernel.stopwatch import time_of_day
from batkube.kernel.streams import Streams
from batkube.outputs.files.folder import OutputFolder
from batkube.outputs.files.manifest import json_text, write_json
from batkube.platforms.model import Platform
from batkube.policies.interface import Policy
from batkube.programs.program import OutsideScheduler
from batkube.scenarios.scenario import CONTROLLER_MANAGER
from batkube.schedulers.descriptions import read_descriptions
from batkube.schedulers.installed import cache_folder
from batkube.serving.collector import QuietCollector
from batkube.serving.compaction import Compaction
from batkube.serving.log_limit import limited_log
from batkube.serving.manager import LOG, ServedManager
from batkube.serving.signals import Ending
from batkube.timing.live import LiveTime
from batkube.timing.loop import Loop
from batkube.version import __version__
from batkube.workloads.rules import ContainerRule, ContainerRules

KUBECONFIG, FIDELITY = "kubeconfig", "fidelity.json"
#: How many changes a client may lag behind before it must list again.
_HISTORY = 100_000
#: And how much memory those changes may take.
_HISTORY_BYTES = 256 * 1024 * 1024
_WEIGHED_ONE_IN = 8

_ONLY_FOR_RUNS = FidelityNote("latencies", "keys that only `batkube run` knows were left out")


@dataclass(frozen=True, slots=True)
class Service:
    """What to serve, and how."""

    #: None for the API alone, without nodes, kubelets, controllers and scheduler.
    platform: Platform | None
    out: Path
    force: bool = False
    host: str = "127.0.0.1"
    #: 0 for any that is free.
    port: int = 0
    #: Virtual seconds per real second.
    speed: float = 1.0
    #: The policy that binds pods, or True for one like kube-scheduler, or False for none.
    scheduler: Policy | bool = True
    #: Whether our own controllers are at work, or else the program that is, if any is.
    controllers: bool = True
    manager: OutsideScheduler | None = None
    latencies: Latencies | None = None
    #: What containers do.
    rules: tuple[ContainerRule, ...] = ()
    token_file: Path | None = None
    #: Versions of the API that are off by default.
    api: tuple[str, ...] = ()
    seed: int = 0
    #: The command line, for the manifest.
    command: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Address:
    """Where clients find the server, and with what they show who they are."""

    url: str
    kubeconfig: Path
    token: str


def serve(service: Service, announce: Callable[[Address], None]) -> None:
    """Serve until interrupted; `announce` is called once requests are accepted and the kubeconfig is written."""
    folder = OutputFolder(service.out, force=service.force)
    users = {} if service.token_file is None else read_token_file(service.token_file)
    token = next((given for given, user in users.items() if user.is_master), None)
    if token is None:
        token = secrets.token_urlsafe(32)
        users[token] = authenticated("admin", "", (MASTERS,))
    world = World(Streams(service.seed), store=Store(_HISTORY, _HISTORY_BYTES, weighed_one_in=_WEIGHED_ONE_IN))
    rules = ContainerRules(service.rules, world.streams)
    ending = Ending()
    with limited_log(), ending.heeded():
        ending.run(_serve(service, folder, users, token, world, rules, ending, announce))
        if ending.was_awaited:
            rules.note_idle(world.notes)
            write_whole(folder.path / FIDELITY, json_text(world.notes.rows()))


async def _serve(
    service: Service,
    folder: OutputFolder,
    users: dict[str, User],
    token: str,
    world: World,
    rules: ContainerRules,
    ending: Ending,
    announce: Callable[[Address], None],
) -> None:
    store, clock, streams, notes, start = world.store, world.clock, world.streams, world.notes, time_of_day()
    time = LiveTime(world, Loop(world), start, service.speed)
    credentials = make_credentials(service.host, start)
    timers = LoopTimers(asyncio.get_running_loop())
    is_bare = service.platform is None
    use = None if is_bare else PodUse(store, rules, clock.now)
    if service.latencies is not None and service.latencies.only_for_runs:
        notes.add(_ONLY_FOR_RUNS, example=", ".join(service.latencies.only_for_runs))
    describe = functools.partial(read_descriptions, cache=cache_folder())
    api = Api(
        store,
        time.now,
        timers,
        streams,
        users,
        bare=is_bare,
        use=use,
        specials={} if is_bare else {"pods/log": Logs(store).answer},
        notes=notes,
        more_versions=service.api,
        describe=describe,
        ask=ask,
        breaking=(world.breaks, functools.partial(do_apart, asyncio.get_running_loop())),
    )
    listener = _listen(api, service, credentials.context)
    try:
        host = f"{_host(service.host)}:{listener.port}"
        api.listens_on(host)
        context = None
        if use is not None and service.controllers:
            scales = api.manifests(token, CONTROLLER_MANAGER)
            context = ControllerContext(usage_by_storage(), use, scales, credentials.authority.decode())
        agents = None if is_bare else _start_cluster(world, api, service, context, rules)
        api.bootstrap(clock.now, listener.port, "" if is_bare else CONTROL_PLANE)
        if service.platform is not None and agents is not None:
            # `batkube emulate` has to know how long a second of this cluster is.
            pace = {} if service.speed == 1 else {ANNOTATION_SPEED: f"{service.speed:g}"}
            register_nodes(service.platform, api.client("kubelet"), agents, clock.now, pace)
        loop = asyncio.get_running_loop()
        collector = QuietCollector(loop, lambda: store.version + store.oldest_version + listener.traffic)
        with time.running(), collector.collecting(), Compaction(loop, store).compacting():
            authority = base64.b64encode(credentials.authority).decode()
            cluster = {"server": f"https://{host}", "certificate-authority-data": authority}
            _write_folder(folder, service, kubeconfig(cluster, "admin", {"token": token}), notes)
            announce(Address(f"https://{host}", folder.path / KUBECONFIG, token))
            await _wait(ending, service, folder)
    finally:
        await listener.close()


async def _wait(ending: Ending, service: Service, folder: OutputFolder) -> None:
    """Wait until somebody asks for the end; meanwhile the real controllers, if wanted, are at work."""
    if service.manager is None:
        await ending.wait()
        return
    manager = ServedManager(service.manager, (folder.path / KUBECONFIG).resolve(), folder.path / LOG)
    with manager.running():
        ends = [asyncio.ensure_future(ending.wait()), asyncio.ensure_future(manager.ended())]
        done, rest = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in rest:
            end.cancel()
        for end in done:
            end.result()


def _start_cluster(
    world: World, api: Api, service: Service, context: ControllerContext | None, rules: ContainerRules
) -> NodeAgents | None:
    courses = Courses()
    agents = start_cluster(
        world,
        api.client,
        courses,
        delays=None if service.latencies is None else Delays(service.latencies, world.streams),
        controllers=context,
        rules=rules,
    )
    if service.scheduler:
        policy = None if service.scheduler is True else service.scheduler
        choice = None if policy is None else PolicyChoice(policy, world.streams.named("policy"))
        start_scheduler(world, api.client("kube-scheduler"), courses, choice)
    return agents


def _listen(api: Api, service: Service, tls: ssl.SSLContext) -> DualListener:
    try:
        return listen_both(api, service.host, service.port, tls)
    except OSError as error:
        raise InputError(
            f"{service.host}:{service.port}",
            problem=f"cannot be listened on: {error.strerror or error}",
            remedy="choose another --port, or leave it out for any that is free",
        ) from error


def _host(host: str) -> str:
    """Return how clients on this machine call the address; one that stands for all of them cannot be called."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{host}]" if ":" in host else host


def _write_folder(folder: OutputFolder, service: Service, access: str, notes: FidelityNotes) -> None:
    """Write the kubeconfig, readable for its owner alone, and what is served."""
    with folder.writing():
        write_private(folder.file(KUBECONFIG), access)
        write_json(folder.file(FIDELITY), notes.rows())
        manifest = {
            "batkube": __version__,
            "command": list(service.command),
            "serves": None if service.platform is None else service.platform.source,
            "nodes": 0 if service.platform is None else len(service.platform.machines),
            "speed": service.speed,
            "seed": service.seed,
        }
        # kubectl changes its file (`kubectl config set-context`), and notes are added until the end.
        living = [KUBECONFIG, FIDELITY]
        if service.manager is not None:
            folder.file(LOG).touch()
            living.append(LOG)
        folder.seal(manifest, living=living)
