"""Jobs that compute, communicate and use storage, energy, and machines that are switched off, in runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import batkube

if TYPE_CHECKING:
    from conftest import Simulate

POWER = '<prop id="wattage_per_state" value="30:30:100, 9:9:9, 200:200:200, 400:400:400"/>'
SLEEP = '<prop id="sleep_pstates" value="1:2:3"/>'
SPEEDS = "1Gf,1f,0.5f,0.05f"


def platform(folder: Path, *, core: int = 1, properties: str = "", speed: str = "1Gf") -> str:
    """Write a platform of four machines and a storage at one switch of 1 GB/s, each on a link of 100 MB/s and 1 ms."""
    hosts = "".join(f'<host id="h{number}" speed="{speed}" core="{core}">{properties}</host>' for number in range(4))
    store = '<host id="disk" speed="0f"><prop id="role" value="storage"/></host>'
    ends = ["h0", "h1", "h2", "h3", "disk"]
    links = "".join(f'<link id="l{end}" bandwidth="100MBps" latency="500us"/>' for end in ends)
    routes = "".join(
        f'<route src="{one}" dst="{other}"><link_ctn id="l{one}"/><link_ctn id="l{other}"/></route>'
        for number, one in enumerate(ends)
        for other in ends[number + 1 :]
    )
    path = folder / "platform.xml"
    path.write_text(
        f'<?xml version="1.0"?><platform version="4.1"><zone id="z" routing="Full">{hosts}{store}{links}{routes}'
        "</zone></platform>"
    )
    return str(path)


def job(name: str, profile: str, size: int = 1, at: float = 0, **more: object) -> dict[str, object]:
    return {"id": name, "subtime": at, "res": size, "profile": profile, **more}


PROFILES: dict[str, dict[str, object]] = {
    "compute": {"type": "parallel_homogeneous", "cpu": 10e9, "com": 0},
    "talk": {"type": "parallel_homogeneous", "cpu": 0, "com": 1e9},
    "store": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1e9, "bytes_to_write": 0, "storage": "disk"},
    "wait": {"type": "delay", "delay": 7},
    "all": {"type": "composed", "seq": ["compute", "wait", "talk"], "repeat": 2},
    "smpi": {"type": "smpi", "trace": "traces.txt"},
    "recv": {"type": "recv", "regex": ".*"},
}


def lengths(run: batkube.Run) -> dict[str, float]:
    return dict(zip(run.jobs["job_id"], run.jobs["execution_time"], strict=True))


def test_run_times_are_determined_by_the_scarcest_resource(simulate: Simulate, tmp_path: Path) -> None:
    jobs = [job("compute", "compute", 4), job("talk", "talk", 2, 100), job("store", "store", 2, 200)]
    jobs.append(job("all", "all", 2, 300))

    run = simulate(jobs, PROFILES, platform=platform(tmp_path))

    # Both directions share a link: 2 GB at 100 MB/s; both machines read over the link of the disk.
    assert lengths(run) == pytest.approx({"compute": 10, "talk": 20.001, "store": 20.001, "all": 74.002})


def test_pods_on_one_node_share_its_cores_regardless_of_their_requests(simulate: Simulate, tmp_path: Path) -> None:
    """Each requests a tenth of a core, and uses a whole core while there are free ones."""
    jobs = [job(str(number), "compute", cpu=0.1) for number in range(4)]

    described = platform(tmp_path, core=2)

    alone = lengths(simulate(jobs[:2], PROFILES, platform=described, resources="requests"))
    crowded = lengths(simulate(jobs, PROFILES, platform=described, resources="requests"))

    assert alone == pytest.approx({"0": 10, "1": 10})
    assert crowded == pytest.approx(dict.fromkeys("0123", 20))


def test_a_walltime_and_an_eviction_end_a_fluid_job(simulate: Simulate, tmp_path: Path) -> None:
    jobs = [job("slow", "all", 4, walltime=12), job("low", "all", 4, 100), job("high", "wait", 4, 105, priority=9)]

    run = simulate(jobs, PROFILES, platform=platform(tmp_path), scheduler="policy:priority", on_eviction="fail")

    assert dict(zip(run.jobs["job_id"], run.jobs["final_state"], strict=True)) == {
        "slow": "COMPLETED_WALLTIME_REACHED",
        "low": "COMPLETED_KILLED",
        "high": "COMPLETED_SUCCESSFULLY",
    }
    assert lengths(run)["slow"] == 12


@pytest.mark.parametrize(
    ("profile", "where", "problem"),
    [
        ("smpi", "xml", "SMPI trace, which needs a real Batsim"),
        ("recv", "xml", "only schedulers of Batsim's protocol send any"),
        ("talk", "4x1", "gives no speed for machine"),
    ],
)
def test_unsupported_profiles_are_rejected_with_their_job(
    simulate: Simulate, tmp_path: Path, profile: str, where: str, problem: str
) -> None:
    described = platform(tmp_path) if where == "xml" else where

    with pytest.raises(batkube.InputError, match=problem) as caught:
        simulate([job("j", profile, 2)], PROFILES, platform=described)

    assert caught.value.at == f"profile '{profile}' of job 'j'"
    assert not (tmp_path / "out").exists()


def test_energy_is_the_sum_of_busy_and_idle_power(simulate: Simulate, tmp_path: Path) -> None:
    described = platform(tmp_path, properties=POWER + SLEEP, speed=SPEEDS)

    run = simulate([job("a", "compute", 2), job("b", "wait", 1, 20)], PROFILES, platform=described, energy=True)

    assert dict(zip(run.jobs["job_id"], run.jobs["consumed_energy"], strict=True)) == {"a": 2000, "b": 210}
    assert (tmp_path / "out" / "consumed_energy.csv").read_text().splitlines() == [
        "time,energy,event_type,wattmin,epower",
        "0.000000,0.000000,s,120.000000,NA",
        "10.000000,2600.000000,e,120.000000,260.000000",
        "20.000000,3800.000000,s,120.000000,120.000000",
        "27.000000,4640.000000,e,120.000000,120.000000",
    ]
    assert run.schedule["consumed_joules"] == 4640


def test_the_sleep_policy_switches_idle_machines_off_and_on_again(simulate: Simulate, tmp_path: Path) -> None:
    """Off after 60 idle seconds, in 2 s at 200 W; on in 20 s at 400 W; 9 W while off."""
    described = platform(tmp_path, properties=POWER + SLEEP, speed=SPEEDS)
    jobs = [job("early", "compute", 1), job("late", "compute", 2, 1000)]

    run = simulate(
        jobs, PROFILES, platform=described, scheduler="policy:sleep", scheduler_args={"idle": 60}, energy=True
    )

    starts = dict(zip(run.jobs["job_id"], run.jobs["starting_time"], strict=True))
    assert starts == {"early": 0, "late": 1020}
    assert (tmp_path / "out" / "pstate_changes.csv").read_text().splitlines() == [
        "time,machine_id,new_pstate",
        "0,0-3,0",
        "60,1-3,-2",
        "62,1-3,1",
        "70,0,-2",
        "72,0,1",
        "1000,0-1,-1",
        "1020,0-1,0",
    ]
    awake_others = 3 * (60 * 30 + 2 * 200) + (10 * 100 + 60 * 30 + 2 * 200)
    asleep = 9 * (2 * (1030 - 62) + (1000 - 62) + (1000 - 72))
    woken = 2 * (20 * 400 + 10 * 100)
    assert run.schedule["consumed_joules"] == pytest.approx(awake_others + asleep + woken)
    assert run.schedule["nb_machine_switches"] == 6
    assert (tmp_path / "out" / "machine_states.csv").read_text().splitlines() == [
        "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing,nb_unavailable",
        "0.000000,0,0,0,3,1,0",
        "10.000000,0,0,0,4,0,0",
        "60.000000,0,0,3,1,0,0",
        "62.000000,3,0,0,1,0,0",
        "70.000000,3,0,1,0,0,0",
        "72.000000,4,0,0,0,0,0",
        "1000.000000,2,2,0,0,0,0",
        "1020.000000,2,0,0,0,2,0",
        "1030.000000,2,0,0,2,0,0",
    ]
    times = {name: run.schedule[f"time_{name}"] for name in ("sleeping", "switching_on", "switching_off")}
    assert times == {"sleeping": asleep / 9, "switching_on": 2 * 20, "switching_off": 4 * 2}
    assert run.schedule["time_computing"] == 10 + 2 * 10
    assert run.schedule["time_idle"] == 4 * 1030 - sum(times.values()) - run.schedule["time_computing"]


def test_a_sleeping_machine_counts_as_sleeping_during_node_events(simulate: Simulate, tmp_path: Path) -> None:
    """A node that is switched off is cordoned, and may fail meanwhile; every row counts four machines."""
    described = platform(tmp_path, properties=POWER + SLEEP, speed=SPEEDS)
    events = tmp_path / "events.yaml"
    events.write_text("events:\n  - {at: 30, cordon: h3}\n  - {at: 65, fail: h2}\n  - {at: 80, return: h2}\n")
    jobs = [job("early", "compute", 1), job("late", "compute", 2, 100)]

    run = simulate(
        jobs,
        PROFILES,
        platform=described,
        scheduler="policy:sleep",
        scheduler_args={"idle": 60},
        energy=True,
        events=str(events),
    )

    states = run.machine_states.set_index("time")
    assert set(states.sum(axis="columns")) == {4}
    assert states["nb_unavailable"][30.0] == 1
    assert states["nb_sleeping"].max() == 3


def test_energy_requires_power_values_and_the_sleep_policy_requires_energy(simulate: Simulate, tmp_path: Path) -> None:
    with pytest.raises(batkube.InputError, match="has no power values"):
        simulate([job("a", "wait")], PROFILES, platform=platform(tmp_path), energy=True)
    with pytest.raises(batkube.InputError, match="has no power values for its machines"):
        simulate([job("a", "wait")], PROFILES, energy=True)
    with pytest.raises(batkube.RunFailed, match="add --energy"):
        simulate([job("a", "wait"), job("b", "wait", at=1000)], PROFILES, scheduler="policy:sleep")


def test_two_runs_are_identical_to_the_byte(simulate: Simulate, tmp_path: Path) -> None:
    described = platform(tmp_path, properties=POWER + SLEEP, speed=SPEEDS)
    jobs = [job(str(number), "all", 1 + number % 3, number) for number in range(12)]
    names = ("jobs.csv", "journal.jsonl", "consumed_energy.csv", "pods.csv")
    texts = []
    for folder in ("one", "two"):
        simulate(jobs, PROFILES, platform=described, energy=True, out=tmp_path / folder)
        texts.append([(tmp_path / folder / name).read_bytes() for name in names])

    assert texts[0] == texts[1]


def test_added_machines_without_a_network_cannot_run_communicating_jobs(simulate: Simulate, tmp_path: Path) -> None:
    events = tmp_path / "events.yaml"
    events.write_text("events:\n  - at: 5\n    add: 1x1\n    names: late\n")

    with pytest.raises(batkube.InputError, match="no speed for machine 'late-0'"):
        simulate([job("j", "talk", 2)], PROFILES, platform=platform(tmp_path), events=str(events))
