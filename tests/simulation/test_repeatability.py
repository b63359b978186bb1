"""A run with a real program is identical to the byte under every condition of the machine and its kernel.

The quick part runs kube-scheduler with a workload whose first lists and watches are larger than a segment of the
loopback. `make test-all` runs all kinds of programs under all conditions, benchmarks/repeatability.py many times.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import opt_in, published
from tests.simulation.test_any_language import IN_A_POD

from batkube.timing.pages.clock_page import ClockPage

PROGRAMS = Path(__file__).parent.parent.parent / "examples" / "programs"
OUTPUTS = ("jobs.csv", "pods.csv", "nodes.csv", "journal.jsonl", "machine_states.csv", "schedule.csv", "fidelity.json")
CONDITIONS = ("undisturbed", "pinned", "loaded", "cuts", "pauses", "slow-server", "slow-program", "wake-ups")
UNLIMITED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {qps: 100000, burst: 100000}
"""


def pin() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


@contextmanager
def other_load(processes: int) -> Iterator[None]:
    """Keep that many other processes busy."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def outputs(condition: str, options: list[str], out: Path) -> dict[str, bytes]:
    """Run under a condition; return the contents of the output files."""
    command = [sys.executable, "-m", "batkube", "run", *options, "--quiet", "--out", str(out)]
    if condition not in CONDITIONS[:3]:
        command += ["--disturb", condition]
    with other_load(3 if condition == "loaded" else 0):
        done = subprocess.run(
            command,
            preexec_fn=pin if condition == "pinned" else None,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return {name: (out / name).read_bytes() for name in OUTPUTS}


def many_pods(folder: Path, scheduler: str) -> list[str]:
    jobs = [{"id": str(number), "subtime": 0, "res": 1, "profile": "d"} for number in range(60)]
    workload, configuration = folder / "workload.json", folder / "configuration.yaml"
    workload.write_text(
        json.dumps({"nb_res": 40, "jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 17, "cpu": 1}}})
    )
    configuration.write_text(UNLIMITED)
    return [
        *("--workload", str(workload), "--platform", "40x1", "--scheduler", scheduler),
        *("--scheduler-config", str(configuration)),
    ]


@pytest.mark.parametrize("condition", ["pinned", "cuts", "pauses", "slow-server", "slow-program", "wake-ups"])
def test_kube_scheduler_is_repeatable_under_every_condition(
    kube_scheduler: str, tmp_path: Path, condition: str
) -> None:
    options = many_pods(tmp_path, kube_scheduler)

    assert outputs(condition, options, tmp_path / "one") == outputs("undisturbed", options, tmp_path / "two")


def test_without_announcements_cut_pieces_change_a_run(
    kube_scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disturbance has an effect: without announcements, results would depend on it."""
    from batkube.scenarios.keys import make_scenario
    from batkube.simulation.run import execute

    options = many_pods(tmp_path, kube_scheduler)
    named = {name.removeprefix("--"): value for name, value in zip(options[::2], options[1::2], strict=True)}

    def digest(out: str) -> str:
        execute(make_scenario({**named, "disturb": "pauses"}, "test"), tmp_path / out)
        return str(json.loads((tmp_path / out / "manifest.json").read_text())["digest"])

    announced = {digest(f"announced-{number}") for number in range(2)}
    monkeypatch.setattr(ClockPage, "announce", lambda page, port, total: None)
    unannounced = {digest(f"unannounced-{number}") for number in range(4)}

    assert len(announced) == 1
    assert unannounced != announced


def in_python(folder: Path) -> list[str]:
    pytest.importorskip("kubernetes")
    scheduler = f"python:{PROGRAMS / 'random_scheduler.py'}"
    return ["--workload", str(published.burst(folder)), "--platform", "16x1", "--scheduler", scheduler]


def in_c(folder: Path) -> list[str]:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    program = folder / "random_scheduler"
    subprocess.run(["cc", "-O2", "-o", str(program), str(PROGRAMS / "random_scheduler.c")], check=True)
    return ["--workload", str(published.burst(folder)), "--platform", "16x1", "--scheduler", f"preload:{program}"]


@pytest.mark.parametrize("program", [in_python, in_c], ids=["python", "c"])
def test_programs_in_other_languages_are_repeatable_with_cut_pieces(
    program: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    options = program(tmp_path)

    assert outputs("cuts", options, tmp_path / "one") == outputs("undisturbed", options, tmp_path / "two")


@pytest.mark.parametrize("kind", ["preload", "python"])
def test_tls_clients_are_repeatable_with_cut_pieces(kind: str, tmp_path: Path) -> None:
    """The program connects as in a pod, over https: with Python's module `ssl`, or with OpenSSL alone."""
    if kind == "python" and subprocess.run(["unshare", "--mount", "--map-root-user", "true"], check=False).returncode:
        pytest.skip("needs mount namespaces, which this machine does not allow")
    (tmp_path / "mine.py").write_text(IN_A_POD)
    command = f"[{sys.executable}, ./mine.py]" if kind == "preload" else "[./mine.py]"
    catalogue = tmp_path / "schedulers.yaml"
    catalogue.write_text(
        f"mine: {{about: mine, scheduler-name: default-scheduler, command: {command}, clock: {kind}, in-cluster: true}}"
    )
    options = [*many_pods(tmp_path, "mine")[:2], "--platform", "1x60", "--scheduler", "mine"]
    options += ["--catalogue", str(catalogue), "--trust"]

    assert outputs("cuts", options, tmp_path / "one") == outputs("undisturbed", options, tmp_path / "two")


def gangs(scheduler: str) -> Callable[[Path], list[str]]:
    def options(folder: Path) -> list[str]:
        workload = str(published.mixed_gangs(folder))
        return ["--workload", workload, "--platform", published.EIGHT_OF_TWO, "--scheduler", scheduler]

    return options


def burst(scheduler: str) -> Callable[[Path], list[str]]:
    return lambda folder: [
        *("--workload", str(published.burst(folder))),
        *("--platform", published.SIXTEEN, "--scheduler", scheduler),
    ]


def with_controllers(folder: Path) -> list[str]:
    manager = "kube-controller-manager@1.34.4"
    return [*burst("kube-scheduler@1.34.4")(folder), "--controllers", manager]


@opt_in.slow("eight runs of each of nine programs")
@pytest.mark.parametrize(
    "program",
    [
        in_python,
        in_c,
        burst("kube-scheduler@1.34.4"),
        burst("kube-scheduler@1.19.0"),
        with_controllers,
        gangs("volcano@1.10.0"),
        gangs("kueue@0.10.0"),
        gangs("scheduler-plugins@0.30.6"),
        gangs("kube-batch@0.5.0"),
    ],
    ids=["python", "c", "1.34.4", "1.19.0", "controllers", "volcano", "kueue", "coscheduling", "kube-batch"],
)
def test_every_kind_of_program_is_repeatable_under_all_conditions(
    program: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    options = program(tmp_path)
    first, *others = (outputs(condition, options, tmp_path / condition) for condition in CONDITIONS)

    assert others == [first] * len(others)
