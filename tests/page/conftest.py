"""A real browser, and pages of small runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.page.pages import OpenPage, PageOpener

import batkube


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window. Playwright's own download is not used.

    While Playwright runs, the thread has a running event loop, with which tests of other modules could not start one.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs `pip install 'batkube[dev]'`")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("needs chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield instance
        instance.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[PageOpener]:  # noqa: ANN401 - Playwright has its own types
    """A function that opens a page; at the end, no page has printed an error or made a request elsewhere."""
    pages: list[OpenPage] = []

    def open_one(content: str | None = None, *, url: str = "", fragment: str = "", **options: object) -> OpenPage:
        if content is not None:
            file = tmp_path / f"page-{len(pages)}.html"
            file.write_text(content, encoding="utf-8")
            url = file.as_uri()
        page = OpenPage(browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}), url + fragment)
        pages.append(page)
        return page

    yield open_one
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def failing_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which nodes fail, are cordoned and added, on shared nodes in zones."""
    folder = tmp_path_factory.mktemp("failing")
    jobs = [
        {"id": str(number), "subtime": number * 7, "res": 1 + number % 3, "profile": f"d{number % 4}", "user": "anna"}
        for number in range(40)
    ]
    profiles = {f"d{number}": {"type": "delay", "delay": 20 + 35 * number} for number in range(4)}
    (folder / "w.json").write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    (folder / "events.yaml").write_text(
        "- {at: 60, fail: node-1, for: 80}\n- {at: 90, drain: node-2, for: 100}\n- {at: 150, add: 2x4, names: spare}\n"
    )
    batkube.run(
        workload=folder / "w.json",
        platform="5x4",
        scheduler="policy:easy",
        events=folder / "events.yaml",
        out=folder / "out",
        progress=False,
    )
    return folder / "out"
