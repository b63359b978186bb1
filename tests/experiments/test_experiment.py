"""An experiment as a whole, from Python: what is run, what is kept, what is written."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.experiments.conftest import Study

import batkube
from batkube.experiments import experiment as experiment_module
from batkube.experiments.plan.code_digest import code_digest
from batkube.experiments.results.result_files import read_results

POLICIES = ["policy:fcfs", "policy:sjf", "policy:easy"]
#: Refuses to work, as a scheduler that leaves jobs behind.
IDLE = """
from batkube.policies.interface import Policy
class Idle(Policy):
    def decide(self, view):
        yield from ()
"""


class Counting(Executor):
    """Does the runs in threads, and counts them."""

    def __init__(self) -> None:
        self.calls = 0
        self._threads = ThreadPoolExecutor(1)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - as Executor has it
        self.calls += 1
        return self._threads.submit(fn, *args, **kwargs)


def results_csv(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_has_a_row_per_run_in_the_order_of_the_grid(study: Study) -> None:
    file = study.file(axes={"scheduler": POLICIES, "machines": {"key": "platform", "values": {2: "2x1", 3: "3x1"}}})

    found = batkube.experiment(file, study.out, executor=Counting())

    rows = results_csv(study.out)
    assert [(row["scheduler"], row["machines"]) for row in rows] == [(one, n) for one in POLICIES for n in ("2", "3")]
    assert [row["state"] for row in rows] == ["done"] * 6
    assert list(found.results["machines"]) == [2, 3] * 3
    for row, told in zip(rows, found.runs, strict=True):
        assert row["run"] == told["run"]
        assert float(row["makespan"]) == found.run(row["run"]).schedule["makespan"]
        assert told["digest"] == found.run(row["run"]).manifest["digest"]


def test_each_run_gives_what_batkube_run_gives(study: Study) -> None:
    found = batkube.experiment(study.file(axes={"scheduler": POLICIES}), study.out, executor=Counting())

    for told in found.runs:
        alone = batkube.run(
            workload=study.folder / "w.json",
            platform="2x1",
            scheduler=told["axes"]["scheduler"],
            out=study.folder / "one",
        )
        assert alone.manifest["digest"] == told["digest"]
        shutil.rmtree(study.folder / "one")


def test_a_finished_run_is_not_run_again(study: Study) -> None:
    executor = Counting()
    batkube.experiment(study.file(axes={"scheduler": POLICIES[:2]}), study.out, executor=executor)
    before = (study.out / "results.csv").read_bytes()

    batkube.experiment(study.file(axes={"scheduler": POLICIES[:2]}), study.out, executor=executor)
    assert executor.calls == 2
    assert (study.out / "results.csv").read_bytes() == before

    batkube.experiment(study.file(axes={"scheduler": POLICIES}), study.out, executor=executor)
    assert executor.calls == 3
    assert len(results_csv(study.out)) == 3


#: Waits until the table has the row of another run, and gives up after a while.
CURIOUS = """
import pathlib, time
from batkube.policies.interface import Policy, Start
class Curious(Policy):
    def decide(self, view):
        for _ in range(2000):
            if len(pathlib.Path("out/results.csv").read_text().splitlines()) > 1:
                break
            time.sleep(0.01)
        else:
            raise RuntimeError("there is no row")
        for job in view.queue:
            if place := view.free.fit(job):
                yield Start(job, place)
"""


def test_the_tables_can_be_looked_at_while_runs_go_on(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study.folder)
    monkeypatch.setattr(experiment_module, "_INTERVAL_S", 0.0)
    (study.folder / "curious.py").write_text(CURIOUS)
    file = study.file(axes={"scheduler": ["policy:fcfs", "policy:./curious.py:Curious"]})

    found = batkube.experiment(file, "out", executor=Counting())

    assert [told["state"] for told in found.runs] == ["done", "done"], found.failures


def test_everything_is_run_again_when_forced(study: Study) -> None:
    executor = Counting()
    file = study.file(axes={"scheduler": POLICIES})
    batkube.experiment(file, study.out, executor=executor)

    batkube.experiment(file, study.out, executor=executor, force=True)

    assert executor.calls == 6


def test_results_of_different_code_are_not_mixed_unless_asked_for(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = Counting()
    batkube.experiment(study.file(axes={"scheduler": POLICIES[:2]}), study.out, executor=executor)
    monkeypatch.setattr(experiment_module, "code_digest", lambda: "another")
    file = study.file(axes={"scheduler": POLICIES})

    with pytest.raises(batkube.InputError, match="holds runs of another version of Batkube's code"):
        batkube.experiment(file, study.out, executor=executor)
    assert executor.calls == 2
    batkube.experiment(file, study.out, executor=executor, keep_finished=True)
    assert executor.calls == 3
    assert json.loads((study.out / "experiment.json").read_text())["code"] == [code_digest(), "another"]

    batkube.experiment(file, study.out, executor=executor)
    assert executor.calls == 3
    batkube.experiment(file, study.out, executor=executor, force=True)
    assert executor.calls == 6
    assert json.loads((study.out / "experiment.json").read_text())["code"] == ["another"]


def test_a_run_whose_input_has_changed_is_run_again_and_a_moved_one_is_not(study: Study, tmp_path: Path) -> None:
    executor = Counting()
    file = study.file()
    batkube.experiment(file, study.out, executor=executor)

    moved = tmp_path / "elsewhere"
    moved.mkdir()
    shutil.copy(file, moved / "renamed.yaml")
    shutil.copy(study.folder / "w.json", moved / "w.json")
    batkube.experiment(moved / "renamed.yaml", study.out, executor=executor)
    assert executor.calls == 1

    (study.folder / "w.json").write_text((study.folder / "w.json").read_text().replace('"delay": 4', '"delay": 5'))
    batkube.experiment(file, study.out, executor=executor)
    assert executor.calls == 2


def test_repeats_are_runs_of_their_own_with_one_digest(study: Study) -> None:
    found = batkube.experiment(study.file(repeats=3), study.out, executor=Counting())

    assert [told["repeat"] for told in found.runs] == [1, 2, 3]
    assert len({told["run"] for told in found.runs}) == 3
    assert len({told["digest"] for told in found.runs}) == 1


def test_a_failure_is_recorded_and_does_not_stop_the_rest(study: Study) -> None:
    (study.folder / "idle.py").write_text(IDLE)
    schedulers = ["policy:fcfs", "policy:./idle.py:Idle", "policy:sjf"]
    executor = Counting()

    found = batkube.experiment(study.file(axes={"scheduler": schedulers}), study.out, executor=executor)

    rows = results_csv(study.out)
    assert [row["state"] for row in rows] == ["done", "failed", "done"]
    assert (rows[1]["makespan"], rows[1]["overallocations"]) == ("", "")
    assert "left 4 of 4 jobs without an outcome" in found.failures[rows[1]["run"]]
    frame = read_results(study.out)
    assert frame["makespan"].isna().tolist() == [False, True, False]


def test_what_failed_is_tried_again_only_when_asked(study: Study) -> None:
    (study.folder / "idle.py").write_text(IDLE)
    file = study.file(axes={"scheduler": ["policy:fcfs", "policy:./idle.py:Idle"]})
    executor = Counting()
    batkube.experiment(file, study.out, executor=executor)
    before = (study.out / "results.csv").read_bytes()

    batkube.experiment(file, study.out, executor=executor)
    assert executor.calls == 2
    batkube.experiment(file, study.out, executor=executor, retry_failed=True)
    assert executor.calls == 3

    assert (study.out / "results.csv").read_bytes() == before
    assert sorted(path.name[:4] for path in (study.out / "runs").iterdir()) == ["fcfs", "idle"]


def test_an_input_that_only_a_run_can_judge_fails_that_run(study: Study) -> None:
    """Whether the jobs fit on the platform is known once both are read, which is done where the run is."""
    platforms = {"key": "platform", "values": {"one": "1x1", "two": "2x1"}}

    found = batkube.experiment(study.file(axes={"size": platforms}), study.out, executor=Counting())

    assert [told["state"] for told in found.runs] == ["failed", "done"]
    (failure,) = found.failures.values()
    assert "can never run" in failure


class Forgetful(Counting):
    """Loses every second call, the first to begin with, as a cluster may."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - as Executor has it
        future = super().submit(fn if self.calls % 2 else str, *args, **kwargs)
        if self.calls % 2 == 0:
            return future
        lost: Future[Any] = Future()
        lost.set_exception(MemoryError("no room left"))
        return lost


def test_a_run_that_the_executor_loses_is_a_failure_of_that_run(study: Study) -> None:
    found = batkube.experiment(study.file(axes={"scheduler": POLICIES}), study.out, executor=Forgetful())

    assert [told["state"] for told in found.runs] == ["failed", "done", "failed"]
    assert list(found.failures.values()) == ["no room left"] * 2


def test_an_experiment_that_ends_before_its_first_run_has_empty_tables(study: Study) -> None:
    class Interrupted(Counting):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - as Executor has it
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        batkube.experiment(study.file(axes={"scheduler": POLICIES}), study.out, executor=Interrupted())

    assert results_csv(study.out) == []
    assert read_results(study.out).empty


def test_half_written_folders_of_a_killed_experiment_are_thrown_away(study: Study) -> None:
    file = study.file()
    batkube.experiment(file, study.out, executor=Counting())
    killed_in_the_middle = f"""
import os, signal
from pathlib import Path
from batkube.outputs.files.folder import OutputFolder
folder = OutputFolder(Path({str(study.out)!r}) / "runs" / "fcfs-0123456789")
with folder.writing():
    folder.file("jobs.csv").write_text("half a t")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", killed_in_the_middle], check=False)
    assert list((study.out / "runs").glob(".*.partial-*"))

    batkube.experiment(file, study.out, executor=Counting())

    assert not list((study.out / "runs").glob(".*.partial-*"))


def test_one_experiment_at_a_time_uses_a_folder(study: Study) -> None:
    file = study.file()

    class Nested(Counting):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - as Executor has it
            with pytest.raises(batkube.InputError, match="another experiment is writing into this folder"):
                batkube.experiment(file, study.out, executor=Counting())
            return super().submit(fn, *args, **kwargs)

    batkube.experiment(file, study.out, executor=Nested())


def test_a_folder_with_something_else_in_it_is_left_alone(study: Study) -> None:
    study.out.mkdir()
    (study.out / "thesis.tex").write_text("precious")

    with pytest.raises(batkube.InputError, match="is not the folder of an experiment"):
        batkube.experiment(study.file(), study.out, executor=Counting())

    assert [path.name for path in study.out.iterdir()] == ["thesis.tex"]


def test_every_scenario_is_checked_before_the_first_run(study: Study) -> None:
    executor = Counting()
    file = study.file(axes={"resources": ["machines", "machinery"]})

    with pytest.raises(batkube.InputError, match="the run resources=machinery, seed=0: resources: 'machinery'"):
        batkube.experiment(file, study.out, executor=executor)

    assert executor.calls == 0
    assert not study.out.exists()


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ({"workload": "missing.json"}, "missing.json: cannot be read: No such file"),
        ({"platform": "missing.xml"}, "missing.xml: cannot be read: No such file"),
        ({"latencies": "missing.yaml"}, "missing.yaml: cannot be read: No such file"),
        ({"scheduler": "fcfs"}, "is a policy, not a program"),
        ({"scheduler": "policy:fcsf"}, "there is no policy of this name"),
        ({"platform": "w.json"}, "w.json"),
        ({"scheduler": "./missing"}, "there is no such program"),
        ({"platform": 16}, "the run seed=0: platform: 16 is not text"),
    ],
)
def test_what_can_be_known_to_be_missing_is_said_before_the_first_run(
    study: Study, base: dict[str, object], message: str
) -> None:
    with pytest.raises(batkube.InputError, match=message):
        batkube.experiment(study.file(base=base), study.out, executor=Counting())

    assert not study.out.exists()


def test_an_experiment_may_be_a_mapping_with_paths_from_here(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study.folder)
    content = {"base": {"workload": "w.json", "platform": "2x1"}, "axes": {"scheduler": POLICIES}, "seeds": 2}

    found = batkube.experiment(content, "out", executor=Counting(), limit=4)

    assert len(found.results) == 4
    description = json.loads((study.out / "experiment.json").read_text())
    assert list(description["inputs"]) == ["w.json"]
    assert description["axes"] == [{"name": "scheduler", "values": POLICIES}]


def test_durations_and_numbers_are_numbers_in_the_frame_and_other_labels_are_text(study: Study) -> None:
    axes = {
        "patience": {"from": "500ms", "to": "1s", "step": "500ms"},
        "mixed": {"key": "watchdog", "values": ["1s", {"long": "1h"}]},
    }

    frame = batkube.experiment(study.file(axes=axes), study.out, executor=Counting()).results

    assert list(frame["patience"]) == [0.5, 0.5, 1.0, 1.0]
    assert list(frame["mixed"]) == ["1s", "long"] * 2
    assert (frame["real_s"] > 0).all()
    assert (frame["overallocations"] == 0).all()
