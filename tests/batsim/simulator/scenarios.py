"""Small random scenarios for a Batsim: a platform, workloads, options, and the behaviour of a scheduler."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.batsim.simulator.random_scheduler import Json, RandomScheduler

Profiles = dict[str, Json]

_HEAD = '<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
_ORIGIN = 'coordinates="0 0 0"'
_WATTS = (
    '<prop id="wattage_per_state" value="30:35:100, 20:20:60, 9.75:9.75:9.75, 200.9:200.9:200.9, 425.1:425.1:425.1"/>'
    '<prop id="wattage_off" value="9.75"/><prop id="sleep_pstates" value="2:3:4"/>'
)
_POWER = 'speed="1Gf,0.5Gf,1e-9Mf,0.5f,0.05f" pstate="0"', _WATTS
#: The main features of scenarios; each scenario has others, too.
FAMILIES = ("silent", "wired", "routes", "energy", "storage", "dynamic", "events", "messages", "traces", "sharing")


@dataclass(frozen=True, slots=True)
class Scenario:
    """The arguments for both Batsims, and the behaviour of the scheduler."""

    arguments: Sequence[str]
    seed: int
    behaviour: Json
    has_scheduler: bool = True

    def scheduler(self) -> RandomScheduler | None:
        """Return a new scheduler."""
        return RandomScheduler(self.seed, self.behaviour) if self.has_scheduler else None


class ScenarioGenerator:
    """Generates a scenario, with its files in a folder."""

    def __init__(self, folder: Path, family: str, seed: int) -> None:
        self._folder = folder
        self._family = family
        self._seed = seed
        self._random = Random(f"{family} {seed}")
        self._arguments: list[str] = []
        self._behaviour: Json = {}
        self._hosts = self._random.randint(2, 9)
        self._has_energy = family == "energy" or (family in ("traces", "silent", "routes") and self._chance(0.25))
        self._has_network = family in ("wired", "routes", "storage") or (family != "silent" and self._chance(0.4))

    def scenario(self) -> Scenario:
        """Write the files, and return the scenario."""
        random = self._random
        self._platform()
        # On a network, the order of jobs of one date in two files depends on the rounding of floats.
        count = 2 if self._chance(0.15) and not self._has_network else 1
        for number in range(count):
            path = self._folder / f"w{number}.json"
            path.write_text(json.dumps(self._workload()))
            self._arguments += ["-w", str(path)]
        if self._family == "events" or self._chance(0.1):
            self._events()
        if self._family == "dynamic":
            self._arguments.append("--enable-dynamic-jobs")
            self._arguments += ["--acknowledge-dynamic-jobs"] * self._chance(0.6)
            self._arguments += ["--enable-profile-reuse"] * self._chance(0.3)
            self._behaviour["register"] = 0.5
        if self._family == "sharing":
            self._arguments.append("--enable-compute-sharing")
        for option in ("--forward-profiles-on-submission", "--disable-storage-sharing"):
            self._arguments += [option] * self._chance(0.2)
        if self._chance(0.1):
            self._arguments += ["--sched-cfg", '{"so": 1}']
        self._set_behaviour()
        # Without a scheduler, jobs start in the order of a hash table, which affects the energy.
        is_plain = "--events" not in self._arguments and not self._has_energy
        has_no_scheduler = is_plain and self._family in ("silent", "wired", "traces") and self._chance(0.08)
        if has_no_scheduler:
            self._arguments = [one for one in self._arguments if one != "--enable-dynamic-jobs"] + ["--no-sched"]
        return Scenario(
            ["-v", "quiet", *self._arguments], random.randrange(2**32), self._behaviour, not has_no_scheduler
        )

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _set_behaviour(self) -> None:
        random = self._random
        for key, share in (("kill", 0.3), ("call", 0.4), ("hesitate", 0.3), ("reject", 0.1), ("describe", 0.3)):
            if self._chance(0.5):
                self._behaviour[key] = share
        # Batsim's internal messages take time on a network. Calls are neither in the past nor at the dates of jobs,
        # because the order of two floats for one date would be chance.
        self._behaviour["ahead"] = [0.001, 0.5, 1.0, 2.5, 5.0, 10.0, 12.345678]
        if self._has_network:
            self._behaviour["ahead"] = [0.1234, 0.5171, 2.4567, 12.345678]
        self._behaviour |= {"scatter": random.random(), "limit": 0.4, "map": 0.2, "io": 0.15, "name_storage": 0.5}
        if self._chance(0.25):
            self._behaviour["delay"] = random.choice((0.47, 1.31) if self._has_network else (0.5, 0.25, 1.0, 3.7))
        if self._has_energy:
            self._behaviour |= {"query": 0.4}
            if self._can_switch:
                self._behaviour |= {"speeds": ["0", "1"], "sleeps": ["2"], "sleep": 0.3, "wake": 0.5, "speed": 0.2}

    # The platform

    @property
    def _can_switch(self) -> bool:
        """Whether machines have sleep states; those of usage traces have several cores instead."""
        return self._has_energy and self._family != "traces"

    def _platform(self) -> None:
        if self._has_energy:
            self._arguments.append("-E")
        names = [f"{self._random.choice(('host', 'n'))}{number}" for number in range(self._hosts)]
        path = self._folder / "platform.xml"
        if self._family == "wired":
            zone = self._cluster()
        elif self._has_network:
            zone = self._star(names)
        else:
            hosts = "".join(self._host(name, _ORIGIN) for name in names)
            zone = f'<zone id="z" routing="Vivaldi">{self._master(_ORIGIN)}{hosts}</zone>'
        path.write_text(f"{_HEAD}{zone}</platform>")
        self._arguments += ["-p", str(path)]
        if self._chance(0.1) and self._hosts > 3 and self._family != "wired":
            self._hosts -= 1
            self._arguments += ["--mmax", str(self._hosts)]

    def _master(self, more: str = "") -> str:
        watts = (
            '<prop id="wattage_per_state" value="0:0"/><prop id="wattage_off" value="0"/>' if self._has_energy else ""
        )
        return f'<host id="master_host" speed="1Gf" {more}>{watts}</host>'

    def _host(self, name: str, more: str = "", inside: str = "") -> str:
        if self._can_switch:
            return f'<host id="{name}" {_POWER[0]} {more}>{_POWER[1]}{inside}</host>'
        speed = self._random.choice(("1Gf", "1Gf", "500Mf", "1.7Gf"))
        cores = self._random.choice((1, 1, 2, 4, 10))
        watts = (
            f'<prop id="wattage_per_state" value="50:60:{self._random.choice((100, 130.5))}"/>'
            if self._has_energy
            else ""
        )
        return f'<host id="{name}" speed="{speed}" core="{cores}" {more}>{watts}{inside}</host>'

    def _cluster(self) -> str:
        random = self._random
        more = random.choice(("", 'bb_bw="2.25GBps" bb_lat="500us"', 'bb_bw="300MBps" bb_lat="10us"'))
        more += random.choice(("", ' loopback_bw="500MBps" loopback_lat="15us"'))
        more += random.choice(("", ' limiter_link="150MBps"'))
        more += random.choice(("", ' core="4"'))
        self._arguments += ["-m", "host0"]
        self._hosts -= 1
        if not self._hosts:
            self._hosts = 1
        last = self._hosts
        return (
            f'<zone id="z" routing="Full"><cluster id="c" prefix="host" suffix="" radical="0-{last}" '
            f'speed="1Gf" bw="125MBps" lat="50us" {more}/></zone>'
        )

    def _star(self, names: Sequence[str]) -> str:
        """Hosts with a link each; some routes use another link that all share."""
        random = self._random
        storages = [f"s{number}" for number in range(random.randint(1, 3))] if self._family == "storage" else []
        role = '<prop id="role" value="storage"/>'
        watts = '<prop id="wattage_per_state" value="5:5:5"/>' if self._has_energy else ""
        parts = [self._master(), *(self._host(name) for name in names)]
        parts += [f'<host id="{name}" speed="0f">{role}{watts}</host>' for name in storages]
        names_of_all = ["master_host", *names, *storages]
        for name in names_of_all:
            policy = ""
            bandwidth, latency = (
                random.choice(("125MBps", "1GBps", "11.6MBps")),
                random.choice(("50us", "10us", "1.46ms")),
            )
            parts.append(f'<link id="l_{name}" bandwidth="{bandwidth}" latency="{latency}" {policy}/>')
        parts.append('<link id="middle" bandwidth="200MBps" latency="100us"/>')
        parts.append('<link id="loop" bandwidth="498MBps" latency="15us" sharing_policy="FATPIPE"/>')
        has_loops = self._chance(0.6)
        for place, source in enumerate(names_of_all):
            if has_loops:
                parts.append(f'<route src="{source}" dst="{source}"><link_ctn id="loop"/></route>')
            for target in names_of_all[place + 1 :]:
                middle = '<link_ctn id="middle"/>' if self._chance(0.3) else ""
                ways = f'<link_ctn id="l_{source}"/>{middle}<link_ctn id="l_{target}"/>'
                parts.append(f'<route src="{source}" dst="{target}">{ways}</route>')
        self._storages = storages
        return f'<zone id="z" routing="Full">{"".join(parts)}</zone>'

    # The workload

    def _workload(self) -> Json:
        random = self._random
        profiles: Profiles = {}
        jobs = []
        names = [str(number) for number in range(random.randint(3, 9))]
        if self._chance(0.2):
            names = [f"job {name}" for name in names]
        dates = self._dates(len(names))
        for name in names:
            size = random.randint(1, max(1, min(4, self._hosts + (1 if self._chance(0.05) else 0))))
            kind = self._profile(profiles, f"p{name}", size)
            job: Json = {"id": name, "subtime": dates.pop(), "res": size}
            job |= {"profile": f"p{name}", "kind": kind}
            if kind == "staging":
                job["res"] = 2
            if kind == "total" and self._chance(0.5):
                job["counts"] = [1, 2, size]
            if self._chance(0.3):
                job["walltime"] = random.choice((5, 10, 10.0, 12.5, 3.3, 100))
            if self._chance(0.1):
                job["note"] = {"a": [1, 2.5, None, True], "b": "ü"}
            jobs.append(job)
        return {"nb_res": self._hosts, "jobs": jobs, "profiles": profiles}

    def _dates(self, count: int) -> list[float]:
        """Return the submission dates.

        On a network they differ: Batsim adds up floats until a date is reached, and if the sum is a little too low, it
        submits two jobs of one date at different dates.
        """
        if self._has_network:
            return self._random.sample([0, 1, 2.5, 5, 10, 17.25, 30, 30.5, 31], count)
        return self._random.choices((0, 0, 0, 1, 2.5, 5, 10, 17.25, 30), k=count)

    def _profile(self, profiles: Profiles, name: str, size: int, depth: int = 0) -> str:
        """Add a profile of a kind that suits the family; return the kind, which the scheduler needs."""
        kinds = ["delay", "delay", "task", "task", "total", "matrix"] + ["sequence"] * (2 - depth)
        extra = {"storage": "store", "messages": "talk", "traces": "trace"}.get(self._family)
        kind = self._random.choice(kinds + [extra] * 5 if extra else kinds)
        description, role = getattr(self, f"_{kind}")(profiles, name, size, depth)
        if self._chance(0.08) and kind != "store":
            description["ret"] = self._random.choice((1, 3))
        profiles[name] = description
        return str(role)

    def _amount(self, *amounts: float) -> float:
        return self._random.choice(amounts)

    @property
    def _sent(self) -> float:
        return self._amount(0, 0, 1e6, 2.5e8, 3e7) if self._has_network else 0

    def _delay(self, profiles: Profiles, name: str, size: int, depth: int) -> tuple[Json, str]:
        return {"type": "delay", "delay": self._amount(1, 5, 10, 12.5, 0.001, 20.2, 3)}, "delay"

    def _task(self, profiles: Profiles, name: str, size: int, depth: int) -> tuple[Json, str]:
        flops = self._amount(0, 1e9, 5e9, 1e10, 7.7e9)
        sent = self._sent if size > 1 else 0
        return {"type": "parallel_homogeneous", "cpu": flops if sent else flops or 1e9, "com": sent}, "task"

    def _total(self, profiles: Profiles, name: str, size: int, depth: int) -> tuple[Json, str]:
        role = "delay" if depth else "total"
        return {"type": "parallel_homogeneous_total", "cpu": self._amount(4e9, 1e10), "com": self._sent}, role

    def _matrix(self, profiles: Profiles, name: str, size: int, depth: int) -> tuple[Json, str]:
        flops = [self._amount(0, 1e9, 6e9) for _ in range(size)]
        flops[0] = 1e9
        sent = [
            self._sent if self._has_network and row != column else 0 for row in range(size) for column in range(size)
        ]
        return {"type": "parallel", "cpu": flops, "com": sent}, "task"

    def _sequence(self, profiles: Profiles, name: str, size: int, depth: int) -> tuple[Json, str]:
        parts = [f"{name}.{number}" for number in range(self._random.randint(1, 3))]
        for part in parts:
            role = self._profile(profiles, part, size, depth + 1)
            if role == "staging":
                profiles[part] = {"type": "delay", "delay": 2}
        # Each part is used: whether Batsim removes those of unused sequences depends on the order of its hash table.
        seq = {"type": "composed", "seq": [*parts, *self._random.choices(parts, k=self._random.randrange(3))]}
        if self._chance(0.5):
            seq["repeat"] = self._random.randint(1, 3)
        return seq, "pfs" if any(profiles[part]["type"] == "parallel_homogeneous_pfs" for part in parts) else "sequence"

    def _store(self, profiles: Profiles, name: str, size: int, depth: int) -> tuple[Json, str]:
        if self._chance(0.4) and len(self._storages) > 1:
            return {"type": "data_staging", "nb_bytes": self._amount(0, 1e8, 7e8), "from": "a", "to": "b"}, "staging"
        profile = {"type": "parallel_homogeneous_pfs", "bytes_to_read": self._amount(0, 1e8, 3e7)}
        profile["bytes_to_write"] = self._amount(1e6, 5e8)
        if self._chance(0.3):
            profile |= {self._random.choice(("storage", "host")): "pfs"}
        return profile, "pfs"

    def _talk(self, profiles: Profiles, name: str, size: int, depth: int) -> tuple[Json, str]:
        """Send a message and receive the answer."""
        yes, no, late = f"{name}.yes", f"{name}.no", f"{name}.late"
        profiles[yes] = {"type": "delay", "delay": self._amount(2, 5)}
        profiles[no] = {"type": "delay", "delay": 1, "ret": self._random.choice((0, 2))}
        profiles[late] = {"type": "delay", "delay": 4}
        send: Json = {"type": "send", "msg": {"from": name, "n": 1.5}}
        if self._chance(0.5):
            send["sleeptime"] = self._amount(0.5, 2)
        receive: Json = {
            "type": "recv",
            "regex": self._random.choice((".*", "yes", "y.*")),
            "success": yes,
            "failure": no,
        }
        if self._chance(0.3):
            receive["timeout"] = late
        if self._chance(0.5):
            receive["polltime"] = self._amount(0.25, 3)
        profiles |= {f"{name}.say": send, f"{name}.hear": receive}
        seq = [f"{name}.say", f"{name}.hear"]
        # Names in `recv` are not references: profiles that are also parts of a sequence are not removed.
        profiles[f"{name}.talk"] = {"type": "composed", "seq": seq}
        return {"type": "composed", "seq": [f"{name}.talk", yes, no, late]}, "sequence"

    def _trace(self, profiles: Profiles, name: str, size: int, depth: int) -> tuple[Json, str]:
        folder = self._folder / "traces"
        folder.mkdir(exist_ok=True)
        ranks = self._random.choice((size, size, size + 1, 1))
        files = []
        for rank in range(ranks):
            file = f"{name}_{rank}.txt".replace(" ", "_")
            steps = [
                f"{rank} m_usage {self._amount(0, 0.1, 0.5, 1)} {self._amount(0, 1e9, 2.5e9):.0f}"
                for _ in range(self._random.randint(1, 4))
            ]
            (folder / file).write_text("\n".join(steps) + "\n")
            files.append(file)
        index = f"{name}.txt".replace(" ", "_")
        (folder / index).write_text("\n".join(files) + "\n")
        return {"type": "usage_trace", "trace": f"traces/{index}"}, "trace"

    # Events

    def _events(self) -> None:
        random = self._random
        lines: list[Json] = []
        # At most 16 lines: std::sort is not stable for more.
        machines = sorted(random.sample(range(self._hosts), random.randint(1, max(1, min(7, self._hosts - 1)))))
        for machine in machines:
            start = random.choice((0, 1, 2.5, 5, 7)) + self._has_network * machine / 8
            end = start + random.choice((2, 5, 10.25))
            lines.append({"type": "machine_unavailable", "resources": str(machine), "timestamp": start})
            lines.append({"type": "machine_available", "resources": str(machine), "timestamp": end})
        if self._chance(0.4):
            lines.append(
                {"type": "weather", "timestamp": random.choice((0, 3.5, 5)), "sun": [1, 2.5], "x": {"y": None}}
            )
            self._arguments.append("--forward-unknown-events")
        path = self._folder / "events.txt"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        self._arguments += ["--events", str(path)]
