"""Compare simulated workloads job by job with the same workloads on a real control plane.

    make reality            or            python scripts/reality.py [CASE …] --out DIR

The real side is etcd, kube-apiserver, kube-controller-manager and kube-scheduler 1.34.4, all without our overlay, with
KWOK for the nodes; `batkube emulate` submits the workloads in real time. The simulated side is `batkube run` with the
same scheduler, configuration and arguments, and with the latencies that `batkube calibrate` derives from the first case
alone. All cases take about twenty minutes on a quiet machine; the programs are built first (half an hour, once). The
exit code is 1 if a result is outside its tolerance.

Gang schedulers are compared too (`reality_gangs`), with a real control plane and with two or three recorded runs of
each case. `python scripts/reality.py gangs --simulated-only` needs no control plane, and takes two minutes.

KubeFlux is compared pod by pod: `python scripts/reality.py kubeflux`, four minutes (`reality_kubeflux`).
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from batkube.emulation.agreement import Agreement, agreement_of, matched_jobs, write_job_comparison
from batkube.emulation.control_plane.plane import SCHEDULER, ControlPlane, control_plane
from batkube.emulation.emulate import emulate
from batkube.emulation.settings import Emulation
from batkube.outputs.results import Results

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from reality_gangs import compare_gangs, gang_table
from reality_kubeflux import compare_kubeflux, kubeflux_table

BATKUBE = str(Path(sys.executable).with_name("batkube"))
LENGTH_S = 17
#: The tolerated error of a simulated mean wait: relative, or absolute in seconds if waits are short.
WAIT_TOLERANCE, WAIT_TOLERANCE_S = 0.03, 0.3
KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PACKING = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}


def burst() -> Iterator[tuple[float, float, str]]:
    """Yield 200 simultaneous pods: the submission, duration and cpu of each."""
    return ((0, LENGTH_S, "1") for _ in range(200))


def mixed() -> Iterator[tuple[float, float, str]]:
    """Yield one small pod a second, then four that need a whole node each."""
    yield from ((second, 30, "1") for second in range(16))
    yield from ((20, 10, "4") for _ in range(4))


@dataclass(frozen=True, slots=True)
class Case:
    """A workload and a scheduler's configuration."""

    name: str
    platform: str
    jobs: Callable[[], Iterable[tuple[float, float, str]]]
    #: The case without this configuration, for the effect of the change.
    base: str = ""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    #: The tolerated relative error of the simulated makespan.
    tolerance: float = 0.01


#: Pods wait for the end of their back-off, which is checked once a second. A node that is missed stays empty until the
#: next attempt, so the makespan varies in steps of some seconds.
STEPPED = 0.02
NO_POP = ("feature-gates=SchedulerPopFromBackoffQ=false",)
SHORT = {"podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 4}
PACKED = {
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": PACKING}}],
        }
    ]
}
CASES = (
    Case("burst", "16x1,4Gi", burst),
    Case("burst-waiting-out-back-off", "16x1,4Gi", burst, "burst", arguments=NO_POP, tolerance=STEPPED),
    Case("burst-shorter-back-off", "16x1,4Gi", burst, "burst-waiting-out-back-off", SHORT, NO_POP, STEPPED),
    Case("mixed", "8x4,16Gi", mixed),
    Case("mixed-packed", "8x4,16Gi", mixed, "mixed", PACKED),
)


GANGS, KUBEFLUX = "gangs", "kubeflux"


def main() -> None:
    """Run the selected cases, print the comparison and write it to the output folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*(case.name for case in CASES), GANGS, KUBEFLUX]
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(names)}; default: all")
    parser.add_argument("--out", type=Path, default=Path("reality-out"), help="the output folder")
    parser.add_argument("--simulated-only", action="store_true", help="use the real runs that are in the folder")
    options = parser.parse_args()
    unknown = [name for name in options.cases if name not in names]
    if unknown:
        parser.error(f"unknown case {unknown[0]}")
    selected = [case for case in CASES if not options.cases or case.name in options.cases]
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    # Like Ctrl-C: the programs are always stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lines: list[str] = []
    outside: list[str] = []
    if selected:
        if not options.simulated_only:
            run_in_real_time(selected, out)
        agreements = simulate(selected, out)
        lines += [*case_table(agreements), "", *change_table(agreements), ""]
        outside += [case.name for case in selected if not is_within(agreements[case.name], case.tolerance)]
    if not options.cases or GANGS in options.cases:
        gangs = compare_gangs(out / GANGS, is_recorded=options.simulated_only)
        lines += [*gang_table(gangs), ""]
        outside += [f"{workload} with {name}" for (workload, name), one in gangs.items() if not one.is_in_range]
    if not options.cases or KUBEFLUX in options.cases:
        flux = compare_kubeflux(out / KUBEFLUX, is_recorded=options.simulated_only)
        lines += [*kubeflux_table(flux), ""]
        outside += [] if flux.is_same else [KUBEFLUX]
    text = "\n".join(lines)
    (out / "reality.md").write_text(text, encoding="utf-8")
    print(text)
    if outside:
        print(f"outside the tolerances: {', '.join(outside)}")
    sys.exit(1 if outside else 0)


def run_in_real_time(cases: Iterable[Case], out: Path) -> None:
    """Run the cases in real time, each with a new scheduler, on one control plane for each platform."""
    platforms: dict[str, list[Case]] = {}
    for case in cases:
        platforms.setdefault(case.platform, []).append(case)
    for number, (platform, platform_cases) in enumerate(platforms.items()):
        folder = out / f"plane-{number}"
        with control_plane(folder, platform, has_scheduler=False, report=print) as plane:
            for case in platform_cases:
                run_case(case, plane, out)


def run_case(case: Case, plane: ControlPlane, out: Path) -> None:
    """Run a case in real time."""
    print(f"running {case.name} in real time", flush=True)
    plane.start_scheduler({**KIND, **case.configuration}, [f"--{argument}" for argument in case.arguments])
    before = plane.cpu_seconds()
    emulate(Emulation(plane.kubeconfig, (write_workload(case, out),)), out / case.name / "real", force=True)
    used = {name: round(seconds - before[name], 1) for name, seconds in plane.cpu_seconds().items()}
    (out / case.name / "cpu.json").write_text(json.dumps(used), encoding="utf-8")


def write_workload(case: Case, out: Path) -> Path:
    """Write the workload of a case and return its path."""
    jobs, profiles = [], {}
    for number, (submit_s, length_s, cpu) in enumerate(case.jobs()):
        profiles[f"delay{length_s}"] = {"type": "delay", "delay": length_s}
        job = {"id": str(number), "subtime": submit_s, "res": 1, "profile": f"delay{length_s}", "cpu": cpu}
        jobs.append(job)
    path = out / case.name / "workload.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": profiles}), encoding="utf-8")
    return path


def simulate(cases: Iterable[Case], out: Path) -> dict[str, Agreement]:
    """Simulate the cases, and return the agreement of each with its real run."""
    latencies = calibrate(next(case for case in CASES if (out / case.name / "real" / "jobs.csv").is_file()), out)
    agreements = {}
    for case in cases:
        folder = out / case.name
        configuration = folder / "configuration.yaml"
        configuration.write_text(json.dumps({**KIND, **case.configuration}), encoding="utf-8")
        command = [BATKUBE, "run", "--workload", str(write_workload(case, out)), "--platform", case.platform, "--quiet"]
        command += ["--scheduler", SCHEDULER, "--scheduler-config", str(configuration), "--latencies", str(latencies)]
        command += [part for argument in case.arguments for part in ("--scheduler-arg", argument)]
        subprocess.run([*command, "--out", str(folder / "simulated"), "--force"], check=True, stdout=subprocess.DEVNULL)
        real, simulated = Results(folder / "real"), Results(folder / "simulated")
        agreements[case.name] = agreement_of(real, simulated)
        write_job_comparison(folder / "jobs-compared.csv", matched_jobs(real, simulated))
    return agreements


def calibrate(case: Case, out: Path) -> Path:
    """Calibrate latencies with the real run of a case; return their file."""
    latencies = out / "latencies.yaml"
    command = [BATKUBE, "calibrate", str(out / case.name / "real"), "--workload", str(write_workload(case, out))]
    command += ["--nodes", case.platform.partition("x")[0], "-o", str(latencies), "--force"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    steps = yaml.safe_load(latencies.read_text(encoding="utf-8"))
    # This step is the time from a Job to its pods. Here are bare pods, and the step has the time to submit 200 of them.
    steps.pop("spawn", None)
    latencies.write_text(yaml.safe_dump(steps, sort_keys=False), encoding="utf-8")
    return latencies


def is_within(agreement: Agreement, tolerance: float) -> bool:
    """Return whether a simulated run agrees with the real one, within the tolerances."""
    is_near = abs(agreement.wait_simulated_s - agreement.wait_real_s) <= WAIT_TOLERANCE_S
    return abs(agreement.makespan_error) <= tolerance and (is_near or abs(agreement.wait_error) <= WAIT_TOLERANCE)


def case_table(agreements: Mapping[str, Agreement]) -> Iterator[str]:
    """Yield the table of the cases."""
    yield "| case | makespan real / simulated | | mean wait real / simulated | | start order | k-th start |"
    yield "|---|---|---|---|---|---|---|"
    for name, one in agreements.items():
        order = "–" if one.start_order is None else f"{one.start_order:+.2f}"
        yield (
            f"| {name} | {one.makespan_real_s:.1f} / {one.makespan_simulated_s:.1f} s | {one.makespan_error:+.2%} "
            f"| {one.wait_real_s:.2f} / {one.wait_simulated_s:.2f} s | {one.wait_error:+.2%} | {order} "
            f"| ±{one.kth_start_s_mean:.2f} s |"
        )


def change_table(agreements: Mapping[str, Agreement]) -> Iterator[str]:
    """Yield the table of the effects of each configuration, in reality and in simulation."""
    yield "| change | makespan real / simulated | mean wait real / simulated |"
    yield "|---|---|---|"
    for case in CASES:
        one, base = agreements.get(case.name), agreements.get(case.base)
        if one is not None and base is not None:
            yield (
                f"| {case.base} → {case.name} "
                f"| {one.makespan_real_s - base.makespan_real_s:+.1f} / "
                f"{one.makespan_simulated_s - base.makespan_simulated_s:+.1f} s "
                f"| {one.wait_real_s - base.wait_real_s:+.2f} / {one.wait_simulated_s - base.wait_simulated_s:+.2f} s |"
            )


if __name__ == "__main__":
    main()
