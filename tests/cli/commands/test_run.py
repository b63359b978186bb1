"""`batkube run`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

WORKLOAD = {
    "nb_res": 4,
    "jobs": [{"id": str(number), "subtime": number, "res": 2, "profile": "d", "walltime": 20} for number in range(6)],
    "profiles": {"d": {"type": "delay", "delay": 10}},
}


def batkube(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "batkube", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_paths_in_a_scenario_file_are_relative_to_it_and_options_override_it(tmp_path: Path) -> None:
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    (inputs / "w.json").write_text(json.dumps(WORKLOAD))
    (inputs / "scenario.yaml").write_text("workload: w.json\nplatform: 4x1\nscheduler: policy:easy\nseed: 3\n")

    result = batkube("run", "inputs/scenario.yaml", "--seed", "8", "--out", "out", cwd=tmp_path)

    assert result.returncode == 0, result.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["scheduler"], manifest["seed"]) == ("policy:easy", 8)
    assert manifest["command"] == ["batkube", "run", "inputs/scenario.yaml", "--seed", "8", "--out", "out"]
    assert "makespan" in result.stdout
    assert "31.0 s" in result.stdout


def test_the_scenario_of_a_manifest_repeats_the_run(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    options = ["--workload", "w.json", "--platform", "4x1", "--scheduler", "policy:random", "--seed", "5"]
    assert batkube("run", *options, "--out", "one", cwd=tmp_path).returncode == 0
    first = json.loads((tmp_path / "one" / "manifest.json").read_text())
    (tmp_path / "again.yaml").write_text(json.dumps(first["scenario"]))

    assert batkube("run", "again.yaml", "--out", "two", cwd=tmp_path).returncode == 0

    assert json.loads((tmp_path / "two" / "manifest.json").read_text())["digest"] == first["digest"]


def test_quiet_prints_only_results(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))

    result = batkube("run", "--workload", "w.json", "--platform", "4x1", "--quiet", "--out", "out", cwd=tmp_path)

    assert result.stderr == ""
    values = dict(line.split("=") for line in result.stdout.splitlines())
    assert values["makespan"] == "31.000000"
    assert (values["nb_jobs"], values["nb_jobs_success"]) == ("6", "6")
    assert list(values) == [
        "nb_jobs",
        "nb_jobs_success",
        "nb_jobs_finished",
        "nb_jobs_failed",
        "nb_jobs_killed",
        "nb_jobs_rejected",
        "nb_violations",
        "makespan",
        "mean_waiting_time",
        "max_waiting_time",
        "mean_slowdown",
        "mean_utilisation",
        "digest",
    ]


def test_jobs_without_an_outcome_are_named_and_the_exit_code_is_1(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    policy = "from batkube.policies.interface import Policy\nclass Lazy(Policy):\n    def decide(self, view):\n"
    (tmp_path / "lazy.py").write_text(policy + "        yield from ()\n")

    options = ["--workload", "w.json", "--platform", "4x1", "--scheduler", "policy:./lazy.py:Lazy", "--out", "out"]
    result = batkube("run", *options, cwd=tmp_path)

    assert result.returncode == 1
    assert "left 6 of 6 jobs without an outcome: w0!0" in result.stderr
    assert "Traceback" not in result.stderr
    assert (tmp_path / "out" / "journal.jsonl").is_file()


def test_a_planning_policy_notes_jobs_without_walltime(tmp_path: Path) -> None:
    jobs = [{key: value for key, value in job.items() if key != "walltime"} for job in WORKLOAD["jobs"]]  # type: ignore[attr-defined]
    (tmp_path / "w.json").write_text(json.dumps({**WORKLOAD, "jobs": jobs}))

    options = ["--workload", "w.json", "--platform", "4x1", "--scheduler", "policy:sjf", "--out", "out"]
    result = batkube("run", *options, cwd=tmp_path)

    assert "warning: policy: jobs without walltime" in result.stdout
    [note] = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert note["count"] == 6


def test_run_imports_no_libraries_of_other_commands(tmp_path: Path) -> None:
    """pandas and matplotlib take most of a second to import, and the others need memory."""
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    script = (
        "import sys; from batkube.cli.invocation import invoke; invoke()\n"
        "others = {'pandas', 'matplotlib', 'batkube.api.assembly', 'batkube.graph', 'batkube.controllers'}\n"
        "print(sorted(others & set(sys.modules)))"
    )
    options = ["run", "--workload", "w.json", "--platform", "4x1", "--quiet", "--out", "out"]

    result = subprocess.run(
        [sys.executable, "-c", script, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert "nb_jobs=" in result.stdout
    assert result.stdout.splitlines()[-1] == "[]"


def test_the_version_and_the_policies_are_printed(tmp_path: Path) -> None:
    assert batkube("--version", cwd=tmp_path).stdout.startswith("batkube 0.")
    assert "policy:conservative" in batkube("policies", cwd=tmp_path).stdout


def test_an_interrupted_run_reports_its_position_and_keeps_its_outputs(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    policy = (
        "import os, signal\nfrom batkube.policies import Policy\nclass Stuck(Policy):\n    def decide(self, view):\n"
        "        while True:\n            os.kill(os.getpid(), signal.SIGINT)\n        yield\n"
    )
    (tmp_path / "stuck.py").write_text(policy)

    options = ["--workload", "w.json", "--platform", "4x1", "--scheduler", "policy:./stuck.py:Stuck", "--out", "out"]
    result = batkube("run", *options, cwd=tmp_path)

    assert result.returncode == 1
    assert "interrupted at 0 s of virtual time, in " in result.stderr
    assert "stuck.py:6" in result.stderr
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["result"] == "failed"
    assert not list(tmp_path.glob(".out*"))


def test_a_run_of_objects_prints_the_phases_of_their_pods(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "web"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    (tmp_path / "objects.yaml").write_text(json.dumps(web))

    options = ["--workload", "objects.yaml", "--platform", "2x4", "--until", "1h", "--out", "out"]
    result = batkube("run", *options, cwd=tmp_path)

    [line] = [line.split() for line in result.stdout.splitlines() if line.startswith("  pods")]
    assert line == ["pods", "3", "3", "running"]


def test_paused_needs_a_page_and_exact_time(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(WORKLOAD))
    options = ["--workload", "w.json", "--platform", "4x1", "--out", "out", "--paused"]

    without_page = batkube("run", *options, cwd=tmp_path)
    real_time = ["--scheduler", "kube-scheduler", "--time", "realtime"]
    in_real_time = batkube("run", *options, "--page", *real_time, cwd=tmp_path)

    assert (without_page.returncode, in_real_time.returncode) == (2, 2)
    assert "--paused: needs --page" in without_page.stderr
    assert "--paused: cannot be combined with --time realtime" in in_real_time.stderr
