"""A scheduler of Batsim's protocol that takes random decisions, of all kinds.

Its replies depend on the seed and the received messages only, so two Batsims that send the same messages get the same
replies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from batkube.kernel.intervals import format_intervals, members, parse_intervals

Json = dict[str, Any]


class RandomScheduler:
    """Executes, kills, rejects and registers jobs and switches machines at random; decides on every job in the end."""

    def __init__(self, seed: int, behaviour: Mapping[str, Any]) -> None:
        """`behaviour` has the probability of each kind of decision, per message or job, and the values of some."""
        self._random = Random(seed)
        self._behaviour = behaviour
        self._queue: list[Json] = []
        self._running: dict[str, int] = {}
        #: Sets of machines: free, sleeping, switching, and unavailable ones.
        self._free = self._asleep = self._switching = self._unavailable = 0
        self._storages: list[int] = []
        self._registered = 0
        self._calls = 0
        self._is_dynamic = self._acknowledges = self._shares = False
        self._now = 0.0
        self._out: list[Json] = []
        self.messages: list[str] = []

    def request(self, text: str) -> bytes:
        """Return the reply to a message."""
        self.messages.append(text)
        message = json.loads(text)
        self._now, self._out = message["now"], []
        for event in message["events"]:
            getattr(self, f"_on_{event['type'].lower()}", lambda data: None)(event["data"])
        if message["events"][-1]["type"] != "SIMULATION_ENDS":
            self._decide()
        delay = self._behaviour.get("delay", 0.0) if self._out else 0.0
        return json.dumps({"now": self._now + delay, "events": self._stamped(delay)}).encode()

    def _stamped(self, delay: float) -> list[Json]:
        """Return the decisions in order, with dates from that of the message to that of the reply."""
        dates = sorted(self._now + self._random.choice((0.0, delay / 2, delay)) for _ in self._out)
        return [{"timestamp": date, **event} for date, event in zip(dates, self._out, strict=True)]

    def _send(self, kind: str, data: Json) -> None:
        self._out.append({"type": kind, "data": data})

    def _chance(self, key: str) -> bool:
        return self._random.random() < self._behaviour.get(key, 0.0)

    # Events

    def _on_simulation_begins(self, data: Json) -> None:
        config = data["config"]
        self._is_dynamic, self._acknowledges = config["dynamic-jobs-enabled"], config["dynamic-jobs-acknowledged"]
        self._shares = data["allow_compute_sharing"]
        self._free = sum(1 << resource["id"] for resource in data["compute_resources"])
        self._count = self._free.bit_count()
        self._storages = [resource["id"] for resource in data["storage_resources"]]

    def _on_job_submitted(self, data: Json) -> None:
        job = {**data["job"], "id": data["job_id"]}
        if job["res"] > self._count or self._chance("reject"):
            self._send("REJECT_JOB", {"job_id": job["id"]})
        else:
            self._queue.append(job)
            if self._chance("describe"):
                self._send("SET_JOB_METADATA", {"job_id": job["id"], "metadata": f"at {self._now}, 'so'"})

    def _on_job_completed(self, data: Json) -> None:
        self._free |= self._running.pop(data["job_id"]) & ~self._unavailable

    def _on_requested_call(self, data: Json) -> None:
        self._calls -= 1

    def _on_from_job_msg(self, data: Json) -> None:
        self._send("TO_JOB_MSG", {"job_id": data["job_id"], "msg": self._random.choice(("yes", "no", "Hello job!"))})

    def _on_resource_state_changed(self, data: Json) -> None:
        machines = parse_intervals(data["resources"])
        self._switching &= ~machines
        if data["state"] in self._behaviour["sleeps"]:
            self._asleep |= machines
        else:
            self._free |= machines & ~self._unavailable

    def _on_notify(self, data: Json) -> None:
        machines = parse_intervals(data["resources"]) if "machine" in data["type"] else 0
        if data["type"] == "event_machine_unavailable":
            self._unavailable |= machines
            self._free &= ~machines
        elif data["type"] == "event_machine_available":
            self._unavailable &= ~machines
            self._free |= machines & ~(self._busy | self._asleep | self._switching)
        elif data["type"] == "no_more_static_job_to_submit" and self._is_dynamic:
            self._register(self._random.randrange(3))
            self._is_dynamic = False
            self._send("NOTIFY", {"type": "registration_finished"})

    @property
    def _busy(self) -> int:
        busy = 0
        for machines in self._running.values():
            busy |= machines
        return busy

    # Decisions

    def _decide(self) -> None:
        if self._is_dynamic and self._queue and self._chance("register") and self._registered < 6:
            self._register(1)
        for job in list(self._queue):
            if not self._chance("hesitate") or not self._running:
                self._start(job)
        if self._running and self._chance("kill"):
            count = self._random.randint(1, min(2, len(self._running)))
            self._send("KILL_JOB", {"job_ids": self._random.sample(sorted(self._running), count)})
        if self._chance("query"):
            self._send("QUERY", {"requests": {"consumed_energy": {}}})
        if self._behaviour.get("speeds"):
            self._switch()
        if self._chance("call") or (self._queue and not self._running and not self._calls):
            self._calls += 1
            ahead = self._random.choice(self._behaviour["ahead"])
            self._send("CALL_ME_LATER", {"timestamp": self._now + self._behaviour.get("delay", 0.0) + ahead})

    def _start(self, job: Json) -> None:
        free = [*members(self._free)]
        count = self._random.choice(job["counts"]) if "counts" in job else job["res"]
        if count > len(free):
            return
        selected = self._random.sample(free, count) if self._chance("scatter") else free[:count]
        data: Json = {"job_id": job["id"], "alloc": format_intervals(sum(1 << number for number in selected))}
        data |= self._extras(job, selected)
        self._queue.remove(job)
        machines = parse_intervals(data["alloc"])
        if machines >> self._count:
            machines = 0
        self._running[job["id"]] = machines
        if not self._shares:
            self._free &= ~machines
        self._send("EXECUTE_JOB", data)

    def _extras(self, job: Json, selected: Sequence[int]) -> Json:
        kind = job.get("kind")
        if kind == "staging":
            source, target = self._random.sample(self._storages, 2)
            return {"alloc": format_intervals(1 << source | 1 << target), "storage_mapping": {"a": source, "b": target}}
        if kind == "pfs" and (len(self._storages) > 1 or self._chance("name_storage")):
            return {"storage_mapping": {"pfs": self._random.choice(self._storages), "other": self._storages[0]}}
        if kind == "task" and self._chance("map") and len(selected) > 1:
            half = selected[: (len(selected) + 1) // 2]
            mapping = {str(rank): str(self._random.randrange(len(half))) for rank in range(job["res"])}
            return {"alloc": format_intervals(sum(1 << number for number in half)), "mapping": mapping}
        if kind == "task" and self._chance("io"):
            return {"additional_io_job": self._io_job(job, selected)}
        return {}

    def _io_job(self, job: Json, selected: Sequence[int]) -> Json:
        """Return an additional_io_job: data that is sent between machines of the job and others."""
        ends = sorted({*selected, *self._random.sample(range(self._count), 1), *self._storages})
        count = len(ends)
        sent = [
            0 if row == column else self._random.choice((0, 1e6, 5e7))
            for row in range(count)
            for column in range(count)
        ]
        profile = {"type": "parallel", "cpu": [0] * count, "com": sent}
        alloc = format_intervals(sum(1 << number for number in ends))
        return {"alloc": alloc, "profile_name": f"io of {job['id']}", "profile": profile}

    def _register(self, count: int) -> None:
        for _ in range(count):
            number, self._registered = self._registered, self._registered + 1
            profile = self._random.choice(_DYNAMIC_PROFILES)
            self._send("REGISTER_PROFILE", {"workload_name": "dyn", "profile_name": f"p{number}", "profile": profile})
            job = {
                "id": f"dyn!{number}",
                "profile": f"p{number}",
                "res": self._random.randint(1, 2),
                "subtime": self._now,
            }
            if self._chance("limit"):
                job["walltime"] = self._random.choice((5, 12.5, 100))
            self._send("REGISTER_JOB", {"job_id": job["id"], "job": job})
            if not self._acknowledges:
                self._queue.append(job)

    def _switch(self) -> None:
        """Switch idle machines to sleep or to another speed, and wake some up when jobs are queued."""
        if self._asleep and (self._queue or self._chance("wake")):
            self._change(self._asleep, self._random.choice(self._behaviour["speeds"]))
            self._asleep = 0
        elif self._free and not self._queue and self._chance("sleep") and self._behaviour["sleeps"]:
            self._change(self._free, self._random.choice(self._behaviour["sleeps"]))
        elif self._free and self._chance("speed"):
            some = sum(1 << number for number in members(self._free) if self._random.random() < 0.6)
            if some:
                self._change(some, self._random.choice(self._behaviour["speeds"]))

    def _change(self, machines: int, state: str) -> None:
        self._free &= ~machines
        self._switching |= machines
        self._send("SET_RESOURCE_STATE", {"resources": format_intervals(machines), "state": state})


_DYNAMIC_PROFILES: Sequence[Json] = (
    {"type": "delay", "delay": 10},
    {"type": "delay", "delay": 7.25},
    {"type": "parallel_homogeneous", "cpu": 4e9, "com": 0},
    {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6},
    {"type": "delay", "delay": 3, "ret": 4},
)
