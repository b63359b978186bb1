"""Every view and button of the page, in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect
from tests.outputs.playback.lives import Lives
from tests.page.pages import TIMEOUT_MS, OpenPage, PageOpener, page_of

import batkube
from batkube.cluster.mapping import kube_name
from batkube.kernel.instants import Instant
from batkube.outputs.playback.model import NodePeriod, RecordedNode
from batkube.page.document import page_of_runs

expect.set_options(timeout=TIMEOUT_MS)

#: A name that is markup, and the longest name that a node may have (RFC 1123 subdomain).
SCRIPT = "<script>alert(1)</script>"
LONG = ".".join(["a" * 63] * 3 + ["b" * 61])


def clock(page: Page) -> str:
    return page.get_by_role("textbox", name="Instant").input_value()


def expect_clock(page: Page, text: str) -> None:
    """Expect the clock to show an instant, after the next frame."""
    expect(page.get_by_role("textbox", name="Instant")).to_have_value(text)


def button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def test_time_moves_by_buttons_keys_slider_and_text(open_page: PageOpener, failing_run: Path) -> None:
    page = open_page(page_of_runs([failing_run])).browser_page
    expect_clock(page, "00:00:00")

    button(page, "Next decision (→)")
    expect_clock(page, "00:00:07")
    # The jobs submitted at 7 s and 14 s need three machines each, and one is left until the first job ends.
    page.keyboard.press("ArrowRight")
    expect_clock(page, "00:00:20")
    button(page, "Previous decision (←)")
    expect_clock(page, "00:00:07")
    button(page, "End (End)")
    expect(page.get_by_role("textbox", name="Instant")).not_to_have_value("00:00:07")
    end = clock(page)
    assert end > "00:04:00"
    page.get_by_role("slider", name="Time").fill("50000")
    expect(page.get_by_role("textbox", name="Instant")).not_to_have_value(end)
    assert "00:01:00" < clock(page) < end
    page.get_by_role("textbox", name="Instant").fill("2min 5s")
    page.keyboard.press("Enter")
    expect_clock(page, "00:02:05")
    page.keyboard.press("Home")
    expect_clock(page, "00:00:00")
    page.get_by_role("combobox", name="Speed").select_option("whole run in 10 s")
    button(page, "Play (Space)")
    expect(page.get_by_role("button", name="Pause (Space)")).to_be_visible()
    expect(page.get_by_role("textbox", name="Instant")).not_to_have_value("00:00:00")
    button(page, "Pause (Space)")
    expect(page.get_by_role("button", name="Play (Space)")).to_be_visible()


def test_the_lists_show_the_queue_events_schedulers_and_stories(open_page: PageOpener, failing_run: Path) -> None:
    page = open_page(page_of_runs([failing_run]), fragment="#t=100").browser_page
    panel = page.get_by_role("tabpanel")
    waiting = int(page.locator(".tiles li", has_text="jobs waiting").locator("b").inner_text())

    assert waiting > 3
    expect(panel.locator("tbody tr")).to_have_count(waiting)
    page.get_by_role("tab", name="Events").click()
    expect(panel).to_contain_text("node-1 is failed")
    page.get_by_role("combobox", name="Show").select_option("nodes")
    expect(panel.locator("li").first).to_contain_text("node-2 is cordoned")
    expect(panel).not_to_contain_text("submitted")
    panel.get_by_role("button", name="node-1 is failed").click()
    expect(panel).to_contain_text("Until now")
    expect(panel.locator("h3").first).to_have_text("node node-1")
    page.get_by_role("tab", name="Scheduler").click()
    expect(panel).to_contain_text("policy:easy")
    page.get_by_role("tab", name="Queue").click()
    panel.get_by_role("button").first.click()
    expect(panel).to_contain_text("has waited")
    panel.get_by_role("button", name="w0-").first.click()
    expect(panel.locator("h3").first).to_contain_text("pod w0-")
    page.keyboard.press("Escape")
    expect(panel).to_contain_text("Click a node")


def test_heat_map_and_charts_react_to_pointer_and_keys(open_page: PageOpener, failing_run: Path) -> None:
    page = open_page(page_of_runs([failing_run]), fragment="#t=100").browser_page
    panel = page.get_by_role("tabpanel")
    heat_map = page.get_by_role("img", name="Heat map of 7 nodes")

    heat_map.hover(position={"x": 60, "y": 40})
    expect(page.locator(".tooltip")).to_contain_text("node-0")
    heat_map.click(position={"x": 60, "y": 40})
    expect(panel.locator("h3").first).to_have_text("node node-0")
    heat_map.press("ArrowRight")
    heat_map.press("ArrowRight")
    expect(page.get_by_role("status")).to_contain_text("node-1, failed")
    heat_map.press("Enter")
    expect(panel.locator("h3").first).to_have_text("node node-1")
    page.get_by_role("radio", name="pods").click()
    expect(page.get_by_role("img", name="pods in use")).to_be_visible()

    gantt = page.get_by_role("img", name="Gantt chart of 7 nodes")
    assert "from 00:00:00" in (gantt.get_attribute("aria-label") or "")
    page.keyboard.press("End")
    button(page, "Zoom in (+)")
    expect(page.get_by_role("img", name="Gantt chart of 7 nodes from 00:00:00")).to_have_count(0)
    button(page, "Show the whole run (0)")
    expect(page.get_by_role("img", name="Gantt chart of 7 nodes from 00:00:00")).to_be_visible()
    # The first job starts on the first machine; its bar begins where the chart does.
    gantt.click(position={"x": 96, "y": 8})
    expect(panel.locator("h3").first).to_have_text("job w0!0")
    page.get_by_role("img", name="Utilisation and queue length").click(position={"x": 600, "y": 30})
    expect(page.get_by_role("textbox", name="Instant")).not_to_have_value("00:01:40")


def test_a_link_leads_to_an_instant_and_a_selection(open_page: PageOpener, failing_run: Path) -> None:
    page = open_page(page_of_runs([failing_run]), fragment="#t=61.5&job=w0!5").browser_page

    expect_clock(page, "00:01:01.5")
    expect(page.get_by_role("tabpanel").locator("h3").first).to_have_text("job w0!5")
    page.get_by_role("combobox", name="Find").fill("node-2")
    page.keyboard.press("Enter")
    page.wait_for_url("**/*#t=61.5&node=node-2")
    page.evaluate("location.hash = '#t=7&pod=w0-1-0'")
    expect(page.get_by_role("tabpanel").locator("h3").first).to_have_text("pod w0-1-0")
    expect_clock(page, "00:00:07")


def hostile_run(folder: Path) -> Path:
    """Run a workload whose names are markup or very long."""
    (folder / SCRIPT.replace("/", "")).mkdir()
    jobs = [
        {"id": SCRIPT, "subtime": 0, "res": 1, "profile": "d", "user": "<img src=x onerror=alert(2)>"},
        {"id": "2", "subtime": 0, "res": 2, "profile": "d", "user": "&quot;"},
    ]
    workload = {"nb_res": 2, "jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 5}}}
    (folder / "w.json").write_text(json.dumps(workload))
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
            "status": {"capacity": {"cpu": "1", "memory": "1Gi", "pods": "110"}},
        }
        for name, zone in ((LONG, "east"), ("n", "west"))
    ]
    (folder / "nodes.yaml").write_text("\n---\n".join(map(json.dumps, nodes)))
    out = folder / SCRIPT.replace("/", "") / "out"
    batkube.run(workload=folder / "w.json", platform=folder / "nodes.yaml", out=out, progress=False)
    return out


def test_names_that_are_markup_or_very_long_are_harmless(open_page: PageOpener, tmp_path: Path) -> None:
    page = open_page(page_of_runs([hostile_run(tmp_path)]), fragment="#t=1").browser_page
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    panel = page.get_by_role("tabpanel")

    page.get_by_role("tab", name="Events").click()
    panel.get_by_role("button", name=SCRIPT).first.click()
    expect(panel.locator("h3").first).to_have_text(f"job w0!{SCRIPT}")
    expect(panel).to_contain_text("<img src=x onerror=alert(2)>")
    page.get_by_role("combobox", name="Group by").select_option("zone")
    page.get_by_role("combobox", name="Find").fill("aaaa")
    page.keyboard.press("Enter")
    expect(panel.locator("h3").first).to_have_text(f"node {kube_name(LONG)}")
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.images.length") == 0
    # Nothing is wider than the window.
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert dialogs == []


def test_the_longest_name_of_a_node_is_shown_whole(open_page: PageOpener) -> None:
    """In a served cluster; the nodes of a run have shorter ones."""
    node = RecordedNode(0, LONG, 0, {"cpu": 1000}, LONG, "", "", (NodePeriod(Instant(0)),))
    page = open_page(page_of(Lives((node,), (), (), {}))).browser_page

    page.get_by_role("img", name="Heat map").press("ArrowRight")
    page.get_by_role("img", name="Heat map").press("Enter")
    expect(page.get_by_role("tabpanel").locator("h3").first).to_have_text(f"node {LONG}")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_two_runs_begin_with_their_first_different_decision(open_page: PageOpener, tmp_path: Path) -> None:
    """The third job can be backfilled only under EASY."""
    jobs = [
        {"id": "1", "subtime": 0, "res": 3, "walltime": 100, "profile": "d"},
        {"id": "2", "subtime": 1, "res": 4, "walltime": 100, "profile": "d"},
        {"id": "3", "subtime": 2, "res": 1, "walltime": 50, "profile": "s"},
    ]
    profiles = {"d": {"type": "delay", "delay": 90}, "s": {"type": "delay", "delay": 30}}
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}))
    for policy in ("fcfs", "easy"):
        run = {"workload": tmp_path / "w.json", "platform": "4x1", "scheduler": f"policy:{policy}"}
        batkube.run(**run, out=tmp_path / policy, progress=False)
    opened: OpenPage = open_page(page_of_runs([tmp_path / "fcfs", tmp_path / "easy"]))
    page = opened.browser_page
    panel = page.get_by_role("tabpanel")

    expect_clock(page, "00:00:02")
    expect(panel).to_contain_text("binds w0-3 to node-3")
    expect(panel).to_contain_text("1 node · 1 node")
    expect(panel).to_contain_text("1 job started in easy, and not yet in fcfs")
    panel.get_by_role("button", name="w0!3").click()
    expect(panel).to_contain_text("running")
    page.get_by_role("combobox", name="Run").select_option("fcfs")
    page.get_by_role("tab", name="Queue").click()
    expect(panel.locator("tbody tr")).to_have_count(2)


def test_the_page_is_readable_on_a_small_dark_screen(open_page: PageOpener, failing_run: Path) -> None:
    options = {"viewport": {"width": 480, "height": 800}, "color_scheme": "dark"}
    page = open_page(page_of_runs([failing_run]), fragment="#t=100", **options).browser_page

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 28)"
