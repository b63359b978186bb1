"""The served page of finished runs answers with explanations and YAML; a file has one sentence instead."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page, expect
from tests.page.pages import TIMEOUT_MS, PageOpener

import batkube
from batkube.outputs.explain.explanation import Explainer
from batkube.outputs.explain.text import lines_of
from batkube.page.document import page_of_runs
from batkube.page.replay import resources_of_runs
from batkube.page.server import PageServer

expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture
def served(failing_run: Path) -> Iterator[PageServer]:
    with PageServer(resources_of_runs([failing_run])) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def select(page: Page, name: str) -> None:
    page.get_by_role("combobox", name="Find").fill(name)
    page.keyboard.press("Enter")


def test_the_page_has_the_text_of_batkube_explain(open_page: PageOpener, served: PageServer, failing_run: Path) -> None:
    page = open_page(url=served.url).browser_page
    panel = page.get_by_role("tabpanel")

    for name in ("w0!5", "w0-1-0", "node-1"):
        select(page, name)
        expected = "\n".join(lines_of(Explainer(failing_run).explain(name)))
        panel.get_by_text("Why?").click()
        expect(panel.get_by_role("region", name="Why?")).to_have_text(expected, use_inner_text=True)


def test_the_yaml_of_a_recording_says_what_it_lacks(open_page: PageOpener, served: PageServer) -> None:
    page = open_page(url=served.url).browser_page
    text = page.get_by_role("tabpanel").locator("details", has_text="YAML").locator("pre")

    select(page, "w0-1-0")
    page.get_by_text("YAML", exact=True).click()
    expect(text).to_contain_text("# From pods.csv")
    expect(text).to_contain_text("Not recorded: labels")
    pod = yaml.safe_load(text.inner_text())
    assert (pod["kind"], pod["metadata"]["name"], pod["status"]["phase"]) == ("Pod", "w0-1-0", "Succeeded")
    assert pod["spec"]["nodeName"].startswith("node-")
    select(page, "node-1")
    page.get_by_text("YAML", exact=True).click()
    expect(text).to_contain_text("# From nodes.csv")
    assert yaml.safe_load(text.inner_text())["status"]["allocatable"]
    select(page, "w0!5")
    page.get_by_text("YAML", exact=True).click()
    expect(text).to_contain_text("# From jobs.csv")
    assert yaml.safe_load(text.inner_text()) == {"id": "w0!5", "subtime": 35, "res": 3, "user": "anna"}


def test_a_file_says_where_explanations_and_yaml_are(open_page: PageOpener, failing_run: Path) -> None:
    page = open_page(page_of_runs([failing_run])).browser_page
    select(page, "w0!5")

    expect(page.get_by_role("tabpanel")).to_contain_text("Explanations and YAML need a server")
    assert page.get_by_role("tabpanel").locator("details").count() == 0


def test_unknown_objects_are_refused(failing_run: Path) -> None:
    resources = resources_of_runs([failing_run])

    assert b"has no pod of the number 100000" in resources["yaml"]({"kind": "pod", "number": "100000"})[1]
    assert b"has no object of the number -1" in resources["yaml"]({"kind": "", "number": "-1"})[1]
    assert b"is not a job, pod or node of this run" in resources["explain"]({"name": "nothing"})[1]


def test_each_of_two_runs_answers_for_itself(failing_run: Path, tmp_path: Path) -> None:
    job = {"id": "only", "subtime": 3, "res": 1, "profile": "d"}
    workload = {"nb_res": 1, "jobs": [job], "profiles": {"d": {"type": "delay", "delay": 5}}}
    (tmp_path / "w.json").write_text(json.dumps(workload))
    batkube.run(workload=tmp_path / "w.json", platform="1x1", out=tmp_path / "out", progress=False)
    resources = resources_of_runs([failing_run, tmp_path / "out"])

    assert b"id: w0!0" in resources["yaml"]({"run": "0", "kind": "job", "number": "0"})[1]
    assert b"id: w0!only" in resources["yaml"]({"run": "1", "kind": "job", "number": "0"})[1]
    assert b"Job w0!only under policy:fcfs" in resources["explain"]({"run": "1", "name": "only"})[1]


def test_all_tabs_fit_beside_two_runs(open_page: PageOpener, failing_run: Path) -> None:
    page = open_page(page_of_runs([failing_run, failing_run]), fragment="#t=100").browser_page
    tabs = [tab.bounding_box() for tab in page.get_by_role("tab").all()]

    assert len(tabs) == 5
    boxes = [box for box in tabs if box is not None]
    assert {box["y"] for box in boxes} == {boxes[0]["y"]}, "one line"
    assert max(box["x"] + box["width"] for box in boxes) <= 1280
