"""The Python interface of experiments: which runs are executed, kept and written."""

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
#: Starts no job.
IDLE = """
from batkube.policies.interface import Policy
class Idle(Policy):
    def decide(self, view):
        yield from ()
"""


class CountingExecutor(Executor):
    """Executes runs in threads, and counts them."""

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

    experiment = batkube.experiment(file, study.out, executor=CountingExecutor())

    rows = results_csv(study.out)
    assert [(row["scheduler"], row["machines"]) for row in rows] == [
        (policy, n) for policy in POLICIES for n in ("2", "3")
    ]
    assert [row["state"] for row in rows] == ["done"] * 6
    assert list(experiment.results["machines"]) == [2, 3] * 3
    for row, run in zip(rows, experiment.runs, strict=True):
        assert row["run"] == run["run"]
        assert float(row["makespan"]) == experiment.run(row["run"]).schedule["makespan"]
        assert run["digest"] == experiment.run(row["run"]).manifest["digest"]


def test_each_run_gives_the_same_files_as_batkube_run(study: Study) -> None:
    experiment = batkube.experiment(study.file(axes={"scheduler": POLICIES}), study.out, executor=CountingExecutor())

    for run in experiment.runs:
        alone = batkube.run(
            workload=study.folder / "w.json",
            platform="2x1",
            scheduler=run["axes"]["scheduler"],
            out=study.folder / "one",
        )
        assert alone.manifest["digest"] == run["digest"]
        shutil.rmtree(study.folder / "one")


def test_a_finished_run_is_not_repeated(study: Study) -> None:
    executor = CountingExecutor()
    batkube.experiment(study.file(axes={"scheduler": POLICIES[:2]}), study.out, executor=executor)
    before = (study.out / "results.csv").read_bytes()

    batkube.experiment(study.file(axes={"scheduler": POLICIES[:2]}), study.out, executor=executor)
    assert executor.calls == 2
    assert (study.out / "results.csv").read_bytes() == before

    batkube.experiment(study.file(axes={"scheduler": POLICIES}), study.out, executor=executor)
    assert executor.calls == 3
    assert len(results_csv(study.out)) == 3


#: Waits until the table has the row of another run, with a timeout.
WAITING = """
import pathlib, time
from batkube.policies.interface import Policy, Start
class Waiting(Policy):
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


def test_the_tables_are_written_while_runs_are_executed(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study.folder)
    monkeypatch.setattr(experiment_module, "_INTERVAL_S", 0.0)
    (study.folder / "waiting.py").write_text(WAITING)
    file = study.file(axes={"scheduler": ["policy:fcfs", "policy:./waiting.py:Waiting"]})

    experiment = batkube.experiment(file, "out", executor=CountingExecutor())

    assert [run["state"] for run in experiment.runs] == ["done", "done"], experiment.failures


def test_all_runs_are_repeated_with_force(study: Study) -> None:
    executor = CountingExecutor()
    file = study.file(axes={"scheduler": POLICIES})
    batkube.experiment(file, study.out, executor=executor)

    batkube.experiment(file, study.out, executor=executor, force=True)

    assert executor.calls == 6


def test_results_of_different_code_are_only_mixed_with_keep_finished(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = CountingExecutor()
    batkube.experiment(study.file(axes={"scheduler": POLICIES[:2]}), study.out, executor=executor)
    monkeypatch.setattr(experiment_module, "code_digest", lambda: "another")
    file = study.file(axes={"scheduler": POLICIES})

    with pytest.raises(batkube.InputError, match="contains runs of another version of Batkube's code"):
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


def test_a_run_is_repeated_if_its_input_changed_but_not_if_it_moved(study: Study, tmp_path: Path) -> None:
    executor = CountingExecutor()
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


def test_repeats_are_separate_runs_with_the_same_digest(study: Study) -> None:
    experiment = batkube.experiment(study.file(repeats=3), study.out, executor=CountingExecutor())

    assert [run["repeat"] for run in experiment.runs] == [1, 2, 3]
    assert len({run["run"] for run in experiment.runs}) == 3
    assert len({run["digest"] for run in experiment.runs}) == 1


def test_a_failed_run_is_recorded_and_the_others_continue(study: Study) -> None:
    (study.folder / "idle.py").write_text(IDLE)
    schedulers = ["policy:fcfs", "policy:./idle.py:Idle", "policy:sjf"]
    executor = CountingExecutor()

    experiment = batkube.experiment(study.file(axes={"scheduler": schedulers}), study.out, executor=executor)

    rows = results_csv(study.out)
    assert [row["state"] for row in rows] == ["done", "failed", "done"]
    assert (rows[1]["makespan"], rows[1]["overallocations"]) == ("", "")
    assert "left 4 of 4 jobs without an outcome" in experiment.failures[rows[1]["run"]]
    frame = read_results(study.out)
    assert frame["makespan"].isna().tolist() == [False, True, False]


def test_failed_runs_are_only_repeated_with_retry_failed(study: Study) -> None:
    (study.folder / "idle.py").write_text(IDLE)
    file = study.file(axes={"scheduler": ["policy:fcfs", "policy:./idle.py:Idle"]})
    executor = CountingExecutor()
    batkube.experiment(file, study.out, executor=executor)
    before = (study.out / "results.csv").read_bytes()

    batkube.experiment(file, study.out, executor=executor)
    assert executor.calls == 2
    batkube.experiment(file, study.out, executor=executor, retry_failed=True)
    assert executor.calls == 3

    assert (study.out / "results.csv").read_bytes() == before
    assert sorted(path.name[:4] for path in (study.out / "runs").iterdir()) == ["fcfs", "idle"]


def test_an_input_that_only_a_run_can_check_fails_that_run(study: Study) -> None:
    """Only the run reads both the jobs and the platform, so only the run can check whether they fit."""
    platforms = {"key": "platform", "values": {"one": "1x1", "two": "2x1"}}

    experiment = batkube.experiment(study.file(axes={"size": platforms}), study.out, executor=CountingExecutor())

    assert [run["state"] for run in experiment.runs] == ["failed", "done"]
    (failure,) = experiment.failures.values()
    assert "can never run" in failure


class LossyExecutor(CountingExecutor):
    """Loses every second call from the first on, as a cluster may."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - as Executor has it
        future = super().submit(fn if self.calls % 2 else str, *args, **kwargs)
        if self.calls % 2 == 0:
            return future
        lost: Future[Any] = Future()
        lost.set_exception(MemoryError("out of memory"))
        return lost


def test_a_run_that_the_executor_loses_fails_alone(study: Study) -> None:
    experiment = batkube.experiment(study.file(axes={"scheduler": POLICIES}), study.out, executor=LossyExecutor())

    assert [run["state"] for run in experiment.runs] == ["failed", "done", "failed"]
    assert list(experiment.failures.values()) == ["out of memory"] * 2


def test_an_experiment_that_ends_before_its_first_run_has_empty_tables(study: Study) -> None:
    class Interrupted(CountingExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - as Executor has it
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        batkube.experiment(study.file(axes={"scheduler": POLICIES}), study.out, executor=Interrupted())

    assert results_csv(study.out) == []
    assert read_results(study.out).empty


def test_partial_folders_of_a_killed_experiment_are_removed(study: Study) -> None:
    file = study.file()
    batkube.experiment(file, study.out, executor=CountingExecutor())
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

    batkube.experiment(file, study.out, executor=CountingExecutor())

    assert not list((study.out / "runs").glob(".*.partial-*"))


def test_a_folder_is_locked_against_a_second_experiment(study: Study) -> None:
    file = study.file()

    class Nested(CountingExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - as Executor has it
            with pytest.raises(batkube.InputError, match="another experiment is writing into this folder"):
                batkube.experiment(file, study.out, executor=CountingExecutor())
            return super().submit(fn, *args, **kwargs)

    batkube.experiment(file, study.out, executor=Nested())


def test_a_folder_with_other_files_is_not_changed(study: Study) -> None:
    study.out.mkdir()
    (study.out / "thesis.tex").write_text("another file")

    with pytest.raises(batkube.InputError, match="is not the folder of an experiment"):
        batkube.experiment(study.file(), study.out, executor=CountingExecutor())

    assert [path.name for path in study.out.iterdir()] == ["thesis.tex"]


def test_every_scenario_is_checked_before_the_first_run(study: Study) -> None:
    executor = CountingExecutor()
    file = study.file(axes={"resources": ["machines", "machinery"]})

    with pytest.raises(batkube.InputError, match="the run resources=machinery, seed=0: resources: 'machinery'"):
        batkube.experiment(file, study.out, executor=executor)

    assert executor.calls == 0
    assert not study.out.exists()


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ({"workload": "missing.json"}, "missing.json: cannot be read: No such file"),
        ({"platform": "missing.xml"}, "missing.xml: no such file"),
        ({"platform": "1y32"}, "1y32: is not a platform"),
        ({"latencies": "missing.yaml"}, "missing.yaml: cannot be read: No such file"),
        ({"scheduler": "fcfs"}, "is a policy, not a program"),
        ({"scheduler": "policy:fcsf"}, "is not a built-in policy"),
        ({"platform": "w.json"}, "w.json"),
        ({"scheduler": "./missing"}, "there is no such program"),
        ({"platform": 16}, "the run seed=0: platform: 16 is not a string"),
    ],
)
def test_missing_inputs_are_reported_before_the_first_run(study: Study, base: dict[str, object], message: str) -> None:
    with pytest.raises(batkube.InputError, match=message):
        batkube.experiment(study.file(base=base), study.out, executor=CountingExecutor())

    assert not study.out.exists()


def test_an_experiment_may_be_a_mapping_with_paths_relative_to_the_current_folder(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(study.folder)
    content = {"base": {"workload": "w.json", "platform": "2x1"}, "axes": {"scheduler": POLICIES}, "seeds": 2}

    experiment = batkube.experiment(content, "out", executor=CountingExecutor(), limit=4)

    assert len(experiment.results) == 4
    description = json.loads((study.out / "experiment.json").read_text())
    assert list(description["inputs"]) == ["w.json"]
    assert description["axes"] == [{"name": "scheduler", "values": POLICIES}]


def test_durations_and_numbers_are_numbers_in_the_frame_and_other_labels_are_text(study: Study) -> None:
    axes = {
        "patience": {"from": "500ms", "to": "1s", "step": "500ms"},
        "mixed": {"key": "watchdog", "values": ["1s", {"long": "1h"}]},
    }

    frame = batkube.experiment(study.file(axes=axes), study.out, executor=CountingExecutor()).results

    assert list(frame["patience"]) == [0.5, 0.5, 1.0, 1.0]
    assert list(frame["mixed"]) == ["1s", "long"] * 2
    assert (frame["real_s"] > 0).all()
    assert (frame["overallocations"] == 0).all()
