"""Valid input files of every format, for the fuzzer to mutate, and the functions that read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import batkube
from batkube.execution.latencies.delays import read_latencies
from batkube.experiments.description.experiment_file import read_experiment
from batkube.kernel.errors import InputError
from batkube.outputs.files.manifest import read_manifest, seal
from batkube.platforms.reader import read_platform
from batkube.recording.log import read_log
from batkube.recording.replay import replay_of
from batkube.scenarios.files import read_scenario_file, scenario_values
from batkube.scenarios.keys import make_scenario
from batkube.schedulers.catalogue import read_catalogue
from batkube.simulation.preparation.named_code import NamedCode, code_of_scenario
from batkube.simulation.rerun import rerun
from batkube.workloads.container_rules.reader import read_rules
from batkube.workloads.reader import read_workload
from batkube.workloads.timeline.reader import read_events

EXAMPLES = Path(__file__).parents[2] / "examples"
_EVENTS = b"""- {between: "exponential:1200", fail: 0-3, for: "uniform:60,300"}
- {at: 10m, drain: node-4, for: 5m}
- {at: 15m, add: 2x1, names: spot}
- {at: 25m, reclaim: [spot-0, spot-1], notice: 2m}
- {at: 1h, every: 10m, taint: 0-3, key: a, value: b, effect: NoSchedule, for: 1m}
- {at: 2h, label: node-1, labels: {a: b, c: null}}
- {at: 3h, scale: deployment/web, to: 4}
- {at: 4h, apply: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}
"""
_RECORDING = b"""{"type":"settings","cluster":"https://c","namespace":"","key":""}
{"type":"begun","at":1000000000,"speed":1.0}
{"type":"node","at":1000000001,"name":"n","allocatable":{"cpu":4000,"memory":8000},"labels":{},"taints":[]}
{"type":"job","at":1000000002,"uid":"j","name":"job","parallelism":1,"completions":1}
{"type":"pod","at":1000000003,"uid":"p","is_listed":false,"description":{"name":"p","namespace":"d",\
"created":"2026-01-01T00:00:00Z","requests":[["cpu",1000]],"priority":0,"scheduler":"","image":"i","job":"j",\
"is_of_node":false,"placement":[]}}
{"type":"pod","at":2000000003,"uid":"p","is_listed":false,"node":"n","has_started":true,\
"started_at":"2026-01-01T00:00:01Z"}
{"type":"pod","at":3000000003,"uid":"p","is_listed":false,"node":"n","has_started":true,"has_finished":true,\
"finished_at":"2026-01-01T00:00:09Z","exit_code":0}
{"type":"ended","at":4000000000}
"""


class GoodFile(NamedTuple):
    """A file, and the function that reads it."""

    name: str
    content: bytes
    read: Callable[[Path], object]


def good_files(folder: Path) -> Iterator[GoodFile]:
    """Yield a file of every format; `folder` is for the files that they refer to."""
    yield from _workloads_and_platforms()
    yield GoodFile("l.yaml", (EXAMPLES / "latencies" / "latencies.yaml").read_bytes(), read_latencies)
    yield GoodFile("rules.yaml", (EXAMPLES / "autoscaling" / "rules.yaml").read_bytes(), read_rules)
    yield GoodFile("events.yaml", _EVENTS, read_events)
    yield GoodFile("recording.jsonl", _RECORDING, lambda path: replay_of(read_log(path), "recorded", gangs=True))
    for path in sorted(EXAMPLES.glob("*/scenario.yaml")):
        yield GoodFile("s.yaml", path.read_bytes(), _read_scenario)
    for path in sorted((EXAMPLES / "experiments").glob("*.yaml")):
        yield GoodFile("e.yaml", path.read_bytes(), read_experiment)
    catalogue = (EXAMPLES / "own-scheduler" / "schedulers.yaml").read_bytes().replace(b"folder: .", b"module: a.io/b")
    catalogue = catalogue.replace(b"module: a.io/b\n", b"module: a.io/b\n  default: 1.0.0\n")
    yield GoodFile("c.yaml", catalogue, lambda path: read_catalogue([path]))
    yield GoodFile("manifest.json", _manifest(folder), _read_run)


def _workloads_and_platforms() -> Iterator[GoodFile]:
    swf = b"; MaxProcs: 4\n" + b"".join(
        b"%d %d 0 10 2 -1 -1 2 20 -1 1 1 1 -1 1 -1 -1 -1\n" % (n, n) for n in range(1, 9)
    )
    jobs = [{"id": str(n), "subtime": n, "res": 1, "profile": "d", "walltime": 9} for n in range(5)]
    batsim = {"nb_res": 4, "jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 5}}}
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
    pod += "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n"
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: '4', memory: 8Gi}}\n"
    xml = b'<?xml version="1.0"?>\n<platform version="4.1">\n <zone id="z" routing="Full">\n'
    xml += b'  <host id="h" speed="1Gf" core="4"/>\n'
    xml += b'  <cluster id="c" prefix="c" suffix="" radical="0-9" speed="1Gf" bw="1Gbps" lat="1us"/>\n'
    xml += b" </zone>\n</platform>\n"
    openb = b"pod,num,cpu_milli,memory_mib,num_gpu,gpu_milli,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    openb += b"openb-pod-0000,1,1000,1024,1,500,LS,Running,0,100,0\n"
    yield GoodFile("w.swf", swf, read_workload)
    yield GoodFile("w.json", json.dumps(batsim, indent=1).encode(), read_workload)
    yield GoodFile("w.yaml", f"{pod}---\n{pod}".encode(), read_workload)
    yield GoodFile("w.csv", openb, read_workload)
    yield GoodFile("p.yaml", f"{node}---\n{node}".encode(), lambda path: read_platform(str(path)))
    yield GoodFile("p.xml", xml, lambda path: read_platform(str(path)))


def _read_scenario(path: Path) -> object:
    scenario = make_scenario(scenario_values(read_scenario_file(path), path), path)
    return code_of_scenario(scenario, path)


def _manifest(folder: Path) -> bytes:
    """Return the manifest of a run in `folder`."""
    workload = {"nb_res": 1, "jobs": [{"id": "1", "subtime": 0, "res": 1, "profile": "d"}]}
    (folder / "w.json").write_text(json.dumps({**workload, "profiles": {"d": {"type": "delay", "delay": 5}}}))
    run = batkube.run(workload=str(folder / "w.json"), platform="2x1", out=folder / "run", pack=True)
    return (run.path / "manifest.json").read_bytes()


def _read_run(path: Path) -> object:
    """Read the manifest of a run, and stop before the run is repeated; anybody can compute the seal of any content."""
    manifest = read_manifest(path.parent)
    manifest.pop("seal", None)
    path.write_bytes(json.dumps(seal(manifest)).encode())
    return rerun(path.parent, confirm=_stop)


def _stop(code: Sequence[NamedCode]) -> None:
    raise InputError("a run", problem="is not repeated")
