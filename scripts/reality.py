"""The same workloads on a real control plane in real time and in simulation, compared job by job.

    make reality            or            python scripts/reality.py [CASE …] --out DIR

The real side is etcd, kube-apiserver, kube-controller-manager and kube-scheduler 1.34.4, none with our overlay, and
KWOK for the nodes; `batkube emulate` plays the workloads on it. The simulated side is `batkube run` with the same
scheduler, configuration and arguments, and with latencies that `batkube calibrate` learns from the first case alone.
Some twenty minutes for all cases, on a machine that is otherwise quiet; the programs are built first (half an hour,
once). Exit code 1 when a result is outside its tolerance.

Schedulers of gangs are compared as well (`reality_gangs`): with such a plane, and with runs that were recorded on one,
two or three of each. `python scripts/reality.py gangs --simulated-only` needs no plane, and two minutes.

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
from reality_gangs import compare_gangs, told_gangs
from reality_kubeflux import compare_kubeflux, kubeflux_table

BATKUBE = str(Path(sys.executable).with_name("batkube"))
LENGTH_S = 17
#: How far a simulated mean wait may be off, relatively or, when hardly anyone waits, in seconds.
WAIT_TOLERANCE, WAIT_TOLERANCE_S = 0.03, 0.3
KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PACKING = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]}


def burst() -> Iterator[tuple[float, float, str]]:
    """Two hundred pods at once; submission, length and cpu of each."""
    return ((0, LENGTH_S, "1") for _ in range(200))


def mixed() -> Iterator[tuple[float, float, str]]:
    """One small pod a second, then four that need a node of their own."""
    yield from ((second, 30, "1") for second in range(16))
    yield from ((20, 10, "4") for _ in range(4))


@dataclass(frozen=True, slots=True)
class Case:
    """A workload and a scheduler's configuration."""

    name: str
    platform: str
    jobs: Callable[[], Iterable[tuple[float, float, str]]]
    #: The case that shows what the configuration changes.
    base: str = ""
    configuration: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    #: How far the simulated makespan may be off.
    tolerance: float = 0.01


#: Pods wait out their back-off, which ends with whole seconds: a node that is missed stays empty until the next try,
#: and the makespan moves in steps of some seconds.
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
    """Run the chosen cases, print the comparison and write it to the output folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*(case.name for case in CASES), GANGS, KUBEFLUX]
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(names)}; all without any")
    parser.add_argument("--out", type=Path, default=Path("reality-out"), help="the folder to write")
    parser.add_argument("--simulated-only", action="store_true", help="the real runs are in the folder already")
    options = parser.parse_args()
    unknown = [name for name in options.cases if name not in names]
    if unknown:
        parser.error(f"there is no case {unknown[0]}")
    chosen = [case for case in CASES if not options.cases or case.name in options.cases]
    out: Path = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    # As Ctrl-C: the programs are ended in any case.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lines: list[str] = []
    outside: list[str] = []
    if chosen:
        if not options.simulated_only:
            play_for_real(chosen, out)
        agreements = simulate(chosen, out)
        lines += [*told(agreements), "", *told_changes(agreements), ""]
        outside += [case.name for case in chosen if not is_within(agreements[case.name], case.tolerance)]
    if not options.cases or GANGS in options.cases:
        gangs = compare_gangs(out / GANGS, is_played=options.simulated_only)
        lines += [*told_gangs(gangs), ""]
        outside += [f"{workload} with {name}" for (workload, name), one in gangs.items() if not one.is_in_range]
    if not options.cases or KUBEFLUX in options.cases:
        flux = compare_kubeflux(out / KUBEFLUX, is_played=options.simulated_only)
        lines += [*kubeflux_table(flux), ""]
        outside += [] if flux.is_same else [KUBEFLUX]
    text = "\n".join(lines)
    (out / "reality.md").write_text(text, encoding="utf-8")
    print(text)
    if outside:
        print(f"outside the tolerances: {', '.join(outside)}")
    sys.exit(1 if outside else 0)


def play_for_real(cases: Iterable[Case], out: Path) -> None:
    """Play the cases, each on a scheduler of its own; one control plane for each platform."""
    platforms: dict[str, list[Case]] = {}
    for case in cases:
        platforms.setdefault(case.platform, []).append(case)
    for number, (platform, its_cases) in enumerate(platforms.items()):
        folder = out / f"plane-{number}"
        with control_plane(folder, platform, has_scheduler=False, report=print) as plane:
            for case in its_cases:
                play(case, plane, out)


def play(case: Case, plane: ControlPlane, out: Path) -> None:
    """Play one case."""
    print(f"playing {case.name} in real time", flush=True)
    plane.start_scheduler({**KIND, **case.configuration}, [f"--{argument}" for argument in case.arguments])
    before = plane.cpu_seconds()
    emulate(Emulation(plane.kubeconfig, (written(case, out),)), out / case.name / "real", force=True)
    used = {name: round(seconds - before[name], 1) for name, seconds in plane.cpu_seconds().items()}
    (out / case.name / "cpu.json").write_text(json.dumps(used), encoding="utf-8")


def written(case: Case, out: Path) -> Path:
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
    """Simulate the cases that were played, and return how each agrees."""
    latencies = calibrated(next(case for case in CASES if (out / case.name / "real" / "jobs.csv").is_file()), out)
    agreements = {}
    for case in cases:
        folder = out / case.name
        configuration = folder / "configuration.yaml"
        configuration.write_text(json.dumps({**KIND, **case.configuration}), encoding="utf-8")
        command = [BATKUBE, "run", "--workload", str(written(case, out)), "--platform", case.platform, "--quiet"]
        command += ["--scheduler", SCHEDULER, "--scheduler-config", str(configuration), "--latencies", str(latencies)]
        command += [part for argument in case.arguments for part in ("--scheduler-arg", argument)]
        subprocess.run([*command, "--out", str(folder / "simulated"), "--force"], check=True, stdout=subprocess.DEVNULL)
        real, simulated = Results(folder / "real"), Results(folder / "simulated")
        agreements[case.name] = agreement_of(real, simulated)
        write_job_comparison(folder / "jobs-compared.csv", matched_jobs(real, simulated))
    return agreements


def calibrated(case: Case, out: Path) -> Path:
    """Return the latencies file that the real run of a case teaches."""
    latencies = out / "latencies.yaml"
    command = [BATKUBE, "calibrate", str(out / case.name / "real"), "--workload", str(written(case, out))]
    command += ["--nodes", case.platform.partition("x")[0], "-o", str(latencies), "--force"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    steps = yaml.safe_load(latencies.read_text(encoding="utf-8"))
    # The time from a Job to its pods: here are bare pods, and what is seen is how long it takes to send 200 at once.
    steps.pop("spawn", None)
    latencies.write_text(yaml.safe_dump(steps, sort_keys=False), encoding="utf-8")
    return latencies


def is_within(agreement: Agreement, tolerance: float) -> bool:
    """Say whether a simulated run is as near to the real one as it should be."""
    near = abs(agreement.wait_simulated_s - agreement.wait_real_s) <= WAIT_TOLERANCE_S
    return abs(agreement.makespan_error) <= tolerance and (near or abs(agreement.wait_error) <= WAIT_TOLERANCE)


def told(agreements: Mapping[str, Agreement]) -> Iterator[str]:
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


def told_changes(agreements: Mapping[str, Agreement]) -> Iterator[str]:
    """Yield the table of what each configuration changes, in reality and in simulation."""
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
