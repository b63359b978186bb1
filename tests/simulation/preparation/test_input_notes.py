"""Inputs that have no effect on a run are fidelity notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import batkube
from batkube.platforms.reader import read_platform
from batkube.policies.registry.catalogue import load_policy
from batkube.policies.registry.profile_access import profile_reads

if TYPE_CHECKING:
    from conftest import Simulate

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full">
  <host id="master" speed="1Gf"><prop id="role" value="master"/></host>
  <host id="disk" speed="1Gf"><prop id="role" value="storage"/></host>
  <host id="a" speed="1Gf"><prop id="wattage_per_state" value="10:20"/></host>
  <host id="b" speed="1Gf"><prop id="wattage_per_state" value="10:20"/></host>
  <link id="l" bandwidth="1GBps" latency="1us"/>
  <route src="a" dst="b"><link_ctn id="l"/></route>
  <route src="a" dst="disk"><link_ctn id="l"/></route>
  <route src="b" dst="disk"><link_ctn id="l"/></route>
</zone></platform>
"""
WAITING = {"d": {"type": "delay", "delay": 10}}
SENDING = {"d": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 1e6}}
STORING = {"d": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 1e6, "bytes_to_write": 0, "storage": "disk"}}
JOBS = [{"id": "1", "subtime": 0, "res": 2, "profile": "d", "walltime": 100}]


def notes_of(run: batkube.Run) -> dict[str, dict[str, Any]]:
    """Return the notes of a run on its platform, by the first word that distinguishes them."""
    words = ("power", "links", "storages")
    notes = [note for note in run.notes if note["subject"] == "platform"]
    return {word: note for word in words for note in notes if word in note["message"]}


@pytest.fixture
def platform(tmp_path: Path) -> str:
    """A platform with energy, a link and a storage."""
    path = tmp_path / "platform.xml"
    path.write_text(PLATFORM)
    return str(path)


def test_energy_links_and_storages_that_a_run_does_not_use_are_noted(simulate: Simulate, platform: str) -> None:
    notes = notes_of(simulate(JOBS, WAITING, platform=platform))

    assert {word: (note["count"], note["severity"]) for word, note in notes.items()} == {
        "power": (2, "warning"),
        "links": (1, "warning"),
        "storages": (1, "warning"),
    }
    assert notes["power"]["example"] == "machine a"
    assert notes["storages"]["example"] == "disk"


def test_energy_links_and_storages_that_a_run_uses_are_not_noted(simulate: Simulate, platform: str) -> None:
    assert list(notes_of(simulate(JOBS, WAITING, platform=platform, energy=True))) == ["links", "storages"]
    assert list(notes_of(simulate(JOBS, SENDING, platform=platform))) == ["power", "storages"]
    assert list(notes_of(simulate(JOBS, STORING, platform=platform))) == ["power"]
    assert not notes_of(simulate(JOBS, WAITING, platform="4x1"))


def test_links_of_a_simgrid_cluster_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "cluster.xml"
    path.write_text(
        "<platform version='4.1'><cluster id='c' prefix='n' suffix='' radical='0-3' speed='1Gf' bw='1GBps' lat='0'/>"
        "</platform>"
    )
    assert read_platform(str(path)).link_count == 1


def test_gang_terms_are_noted_if_the_run_creates_no_pod_groups(simulate: Simulate) -> None:
    jobs = [{**JOBS[0], "min_member": 1}, {**JOBS[0], "id": "2", "min_resources": {"cpu": 1}}, {**JOBS[0], "id": "3"}]

    (note,) = [note for note in simulate(jobs, WAITING).notes if "min_member" in note["message"]]

    assert (note["count"], note["example"]) == (2, "job w0!1")


ORACLE = """
from batkube.policies import Policy, Start

def length(job):
    return job.profile.duration

def unrelated(job):
    return job.profile

class Oracle(Policy):
    def decide(self, view):
        for job in sorted(view.queue, key=lambda job: length(job)):
            placement = view.free.fit(job)
            if placement is not None:
                yield Start(job, placement)

class Inherits(Oracle):
    pass

class Honest(Policy):
    def decide(self, view):
        for job in view.queue:
            placement = view.free.fit(job)
            if placement is not None:
                yield Start(job, placement)
"""


def test_a_policy_that_reads_the_real_run_time_is_noted_with_file_and_line(simulate: Simulate, tmp_path: Path) -> None:
    path = tmp_path / "oracle.py"
    path.write_text(ORACLE)

    def seen(name: str) -> list[str]:
        run = simulate(JOBS, WAITING, scheduler=f"policy:{path}:{name}")
        return [note["example"] for note in run.notes if "true future" in note["message"]]

    assert seen("Oracle") == [f"{path.name}:5"]
    assert seen("Inherits") == [f"{path.name}:5"]
    assert seen("Honest") == []


@pytest.mark.parametrize("name", ["fcfs", "sjf", "easy", "conservative", "best-fit", "random", "priority", "fluxion"])
def test_none_of_our_policies_reads_the_real_run_time(name: str) -> None:
    assert profile_reads(type(load_policy(name, {}))) == []


def test_flags_that_kube_scheduler_ignores_are_noted(simulate: Simulate, kube_scheduler: str) -> None:
    arguments = {"kube-api-qps": 1, "leader-elect": "false"}
    run = simulate(JOBS, WAITING, platform="4x1", scheduler=kube_scheduler, scheduler_args=arguments)

    notes = json.loads((run.path / "fidelity.json").read_text())
    (note,) = [note for note in notes if "ignores flags" in note["message"]]
    assert note["count"] == 1
    assert note["example"].endswith("--kube-api-qps=1: write clientConnection.qps")
