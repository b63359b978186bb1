"""A bundled run, executed without access to our files, gives the same files as a local run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from batkube.experiments.description.experiment_file import read_experiment
from batkube.experiments.plan.runs import make_plan
from batkube.experiments.running.run_bundles import BundleResult, RunBundle, bundle_of, run_bundle, unpack_result
from batkube.experiments.running.runner import RunRequest, execute_request
from batkube.experiments.running.worker_pool import WorkerPool
from batkube.schedulers.installed import installed_program

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
<host id="master" speed="1Gf"/><host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>
</zone></platform>
"""
POLICY = """
from batkube.policies import Policy, Start
class Mine(Policy):
    def decide(self, view):
        for job in view.queue:
            place = view.free.fit(job)
            if place is not None:
                yield Start(job, place)
"""


def study(folder: Path) -> Path:
    """Write inputs that refer to other inputs, and return the path of the experiment file."""
    (folder / "inputs" / "traces").mkdir(parents=True)
    inputs = folder / "inputs"
    (inputs / "platform.xml").write_text(PLATFORM)
    (inputs / "traces" / "t.txt").write_text("rank0.txt\n")
    (inputs / "traces" / "rank0.txt").write_text("0 m_usage 1 2e9\n")
    jobs = [{"id": str(n), "subtime": n, "res": 1, "profile": "u"} for n in range(3)]
    profiles = {"u": {"type": "usage_trace", "trace": "traces/t.txt"}}
    (inputs / "w.json").write_text(json.dumps({"nb_res": 2, "jobs": jobs, "profiles": profiles}))
    claim = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
    (inputs / "objects.yaml").write_text(yaml.safe_dump(claim))
    (inputs / "events.yaml").write_text(yaml.safe_dump([{"at": 1, "apply": "objects.yaml"}]))
    (folder / "mine.py").write_text(POLICY)
    base = {"workload": "inputs/w.json", "platform": "inputs/platform.xml", "events": "inputs/events.yaml"}
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump({"base": {**base, "scheduler": "policy:./mine.py:Mine", "seed": 3}}))
    return path


def request_of(path: Path, out: Path) -> RunRequest:
    (run,) = make_plan(read_experiment(path), installed_program).runs
    return RunRequest(run.scenario, out.absolute() / run.name, run.programs, ["batkube", "experiment"])


def run_in_other_process(bundle: RunBundle, contents: list[bytes], folder: Path) -> BundleResult:
    folder.mkdir()
    workers = WorkerPool(1)
    try:
        return workers.submit(run_bundle, bundle, contents, folder).result()
    finally:
        workers.kill()


@pytest.mark.parametrize("is_absolute", [True, False])
def test_a_bundle_gives_the_same_files_as_a_local_run(
    is_absolute: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    path = study(here)
    (here / "below").mkdir()
    monkeypatch.chdir(here / "below")
    request = request_of(path if is_absolute else Path("..", path.name), tmp_path / "out")
    assert execute_request(request) is None
    local = {file.name: file.read_bytes() for file in request.folder.iterdir()}

    bundle = bundle_of(request)
    contents = [file.read_bytes() for file in bundle.files]
    here.rename(tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    result = run_in_other_process(bundle, contents, tmp_path / "remote")
    unpack_result(result, request.folder)

    names = {"w.json", "platform.xml", "events.yaml", "objects.yaml", "t.txt", "rank0.txt", "mine.py"}
    assert {file.name for file in bundle.files} == names
    assert not (tmp_path / "remote").exists()
    remote = {file.name: file.read_bytes() for file in request.folder.iterdir()}
    assert remote.keys() == local.keys()
    assert {name for name in local if local[name] != remote[name]} <= {"manifest.json"}
    manifests = [json.loads(files["manifest.json"]) for files in (local, remote)]
    for manifest in manifests:
        del manifest["real"], manifest["seal"]
    assert manifests[0] == manifests[1]


def test_errors_of_a_bundle_name_the_paths_of_the_sender(tmp_path: Path) -> None:
    path = study(tmp_path)
    request = request_of(path, tmp_path / "out")
    bundle = bundle_of(request)
    contents = [b"not JSON" if file.name == "w.json" else file.read_bytes() for file in bundle.files]

    result = run_in_other_process(bundle, contents, tmp_path / "remote")

    assert str(result.failure).startswith(f"{tmp_path / 'inputs' / 'w.json'}: ")
    assert "remote" not in str(result.failure)
    unpack_result(result, request.folder)
    assert not request.folder.exists()
