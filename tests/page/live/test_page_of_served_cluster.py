"""Every control and action of the page of a served cluster, in a real browser, checked through its API."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.page.live.conftest import ServedPage
from tests.page.pages import TIMEOUT_MS, PageOpener, wait_until

from batkube.page.server import TOKEN_HEADER

expect.set_options(timeout=TIMEOUT_MS)

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec:\n  containers: [{name: c, image: batch}]\n"


def open_tab(page: Page, name: str) -> Locator:
    page.get_by_role("tab", name=name).click()
    return page.get_by_role("tabpanel")


def select_node(page: Page, name: str) -> Locator:
    page.get_by_role("combobox", name="Find").fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("tabpanel").locator("h3").first).to_have_text(f"node {name}")
    return page.get_by_role("tabpanel")


def wait_for(page: Page, condition: Callable[[], bool]) -> None:
    """Wait until the API says so."""
    for _ in range(600):
        if condition():
            return
        page.wait_for_timeout(100)
    raise AssertionError("the API does not say so")


def test_pods_of_the_form_and_objects_in_yaml_are_submitted(open_page: PageOpener, served: ServedPage) -> None:
    page = open_page(url=served.url).browser_page
    panel = open_tab(page, "Actions")

    panel.get_by_label("Name").fill("form")
    panel.get_by_label("CPU (cores)").fill("2")
    panel.get_by_label("Memory").fill("3Gi")
    panel.get_by_label("Run time (s)").fill("100000")
    panel.get_by_label("Copies").fill("3")
    panel.get_by_role("button", name="Submit").click()
    expect(panel.get_by_role("status")).to_have_text("applied Pod " + served_name(panel) + " and 2 more")
    pods = [pod for pod in served.pods() if pod["metadata"]["name"].startswith("form-")]
    assert len(pods) == 3
    assert pods[0]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "3Gi"}
    assert pods[0]["metadata"]["annotations"]["batkube.io/duration"] == "100000"
    panel.get_by_label("Copies").fill("1")
    panel.get_by_label("Manifest (YAML)").fill(POD.replace("NAME", "typed"))
    panel.get_by_role("button", name="Submit").click()
    expect(panel.get_by_role("status")).to_have_text("applied Pod default/typed")
    assert "typed" in [pod["metadata"]["name"] for pod in served.pods()]


def served_name(panel: Locator) -> str:
    """Return the name of the first pod that the outcome names."""
    outcome = panel.get_by_role("status")
    expect(outcome).to_contain_text("applied Pod default/form-")
    return outcome.inner_text().split()[2]


def test_refusals_have_the_words_of_the_api(open_page: PageOpener, served: ServedPage) -> None:
    page = open_page(url=served.url).browser_page
    panel = open_tab(page, "Actions")
    manifest, outcome = panel.get_by_label("Manifest (YAML)"), panel.get_by_role("status")

    for text, message in (
        (POD.replace("NAME", "Upper_Case"), 'Pod "Upper_Case" is invalid: metadata.name: Invalid value'),
        (POD.replace("image:", "imagee:").replace("NAME", "x"), "field not declared in schema"),
        ("kind: Pod", "manifest: is not a Kubernetes object"),
        ("a: [", "manifest: "),
        ("", "manifest: contains no object"),
        ("{apiVersion: a/v1, kind: Nothing, metadata: {name: x}}", 'no matches for kind "Nothing" in version "a/v1"'),
    ):
        manifest.fill(text)
        panel.get_by_role("button", name="Submit").click()
        expect(outcome).to_contain_text(message)
        expect(outcome).to_have_class("outcome refused")
    panel.get_by_label("Copies").fill("2")
    manifest.fill(POD.replace("NAME", "twice"))
    panel.get_by_role("button", name="Submit").click()
    expect(outcome).to_contain_text("use generateName instead of name")


def test_a_node_is_cordoned_drained_and_made_schedulable_again(open_page: PageOpener, served: ServedPage) -> None:
    page = open_page(url=served.url).browser_page
    wait_for(page, lambda: any(pod["spec"].get("nodeName") for pod in served.pods()))
    node = next(pod["spec"]["nodeName"] for pod in served.pods() if pod["spec"].get("nodeName"))
    panel = select_node(page, node)
    outcome = panel.locator(".outcome")

    panel.get_by_role("button", name=re.compile("^Cordon: ")).click()
    expect(outcome).to_have_text(f"node {node} is cordoned")
    assert served.node(node)["spec"]["unschedulable"] is True
    expect(panel.get_by_role("button", name=re.compile("^Cordon: "))).to_be_disabled()
    panel.get_by_role("button", name="Drain: ").click()
    expect(outcome).to_contain_text(f"node {node} is cordoned, and ")
    wait_for(page, lambda: all(pod["spec"].get("nodeName") != node for pod in served.pods()))
    panel.get_by_role("button", name="Uncordon: ").click()
    expect(outcome).to_have_text(f"node {node} is schedulable again")
    assert "unschedulable" not in served.node(node)["spec"]
    expect(panel.get_by_role("button", name="Uncordon: ")).to_be_disabled()


def test_a_drain_reports_what_a_disruption_budget_refuses(open_page: PageOpener, served: ServedPage) -> None:
    page = open_page(url=served.url).browser_page
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    budget = {"minAvailable": "100%", "selector": {"matchLabels": {"app": "web"}}}
    served.api.create(path, {"kind": "PodDisruptionBudget", "metadata": {"name": "all"}, "spec": budget})
    wait_for(page, lambda: "status" in served.api.get(f"{path}/all"))
    webs = [pod for pod in served.pods() if pod["metadata"].get("labels", {}).get("app") == "web"]
    node = webs[0]["spec"]["nodeName"]
    panel = select_node(page, node)

    panel.get_by_role("button", name="Drain: ").click()
    expect(panel.locator(".outcome.refused")).to_contain_text(
        "Cannot evict pod as it would violate the pod's disruption budget"
    )
    served.api.delete(f"{path}/all")
    panel.get_by_role("button", name="Uncordon: ").click()
    expect(panel.locator(".outcome")).to_have_text(f"node {node} is schedulable again")


def test_a_node_fails_and_returns(open_page: PageOpener, served: ServedPage) -> None:
    page = open_page(url=served.url).browser_page
    panel = select_node(page, "node-3")

    def ready() -> str:
        conditions = served.node("node-3")["status"]["conditions"]
        return str(next(condition["status"] for condition in conditions if condition["type"] == "Ready"))

    expect(panel.get_by_role("button", name="Restore: ")).to_be_disabled()
    panel.get_by_role("button", name="Fail: ").click()
    expect(panel.locator(".outcome")).to_have_text("node node-3 failed")
    expect(panel.locator("dd").first).to_have_text("failed")
    wait_for(page, lambda: ready() == "Unknown")
    panel.get_by_role("button", name="Restore: ").click()
    expect(panel.locator(".outcome")).to_have_text("node node-3 returned")
    wait_for(page, lambda: ready() == "True")


def test_deployments_are_scaled_and_loads_changed(open_page: PageOpener, served: ServedPage) -> None:
    page = open_page(url=served.url).browser_page
    panel = open_tab(page, "Actions")

    panel.get_by_role("spinbutton", name="Deployment web").fill("3")
    panel.get_by_role("button", name="Scale: Deployment web").click()
    expect(panel.get_by_role("status")).to_have_text("Deployment default/web is scaled to 3")
    wait_for(page, lambda: served.api.get(f"{APPS}/deployments/web")["status"].get("readyReplicas") == 3)
    load = panel.get_by_role("textbox", name="image nginx*, cores")
    assert load.input_value() == "2"
    load.fill("6")
    panel.get_by_role("button", name="Set load: image nginx*").click()
    expect(panel.get_by_role("status")).to_contain_text("is 6 cores from now on")
    assert usage_of_web(served) == ["2000000000n"] * 3
    load.fill("many")
    panel.get_by_role("button", name="Set load: image nginx*").click()
    expect(panel.get_by_role("status")).to_contain_text("remedy: write cores, such as 2.5 or 500m")
    assert usage_of_web(served) == ["2000000000n"] * 3


APPS = "/apis/apps/v1/namespaces/default"


def usage_of_web(served: ServedPage) -> list[str]:
    """Return the CPU usage of the Deployment's pods."""
    items = served.api.get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods")["items"]
    webs = [item for item in items if item["metadata"]["name"].startswith("web-")]
    return [item["containers"][0]["usage"]["cpu"] for item in webs]


def test_the_clock_pauses_stops_and_changes_its_speed(open_page: PageOpener, served: ServedPage) -> None:
    page = open_page(url=served.url).browser_page
    bar = page.get_by_role("toolbar", name="Clock of the cluster")
    state, instant = bar.get_by_role("status"), page.get_by_role("textbox", name="Instant")

    expect(bar.get_by_role("combobox")).to_have_value("60")
    expect(bar.get_by_role("button", name="Next decision")).to_have_count(0)
    bar.get_by_role("button", name="Pause the cluster (P)").click()
    expect(state).to_have_text("paused")
    page.wait_for_timeout(600)
    paused_at = page.evaluate("window.batkube.end()")
    page.wait_for_timeout(600)
    assert page.evaluate("window.batkube.end()") == paused_at
    # Requests are answered, and have their effects at this instant.
    served.api.create("/api/v1/namespaces/default/pods", pod_of("while-paused"))
    wait_for(page, lambda: phase_of(served, "while-paused") == "Running")
    bar.get_by_role("textbox", name="Run until").fill("soon")
    page.keyboard.press("Enter")
    expect(page.locator(".unseen[role=status]")).to_contain_text("not an instant")
    bar.get_by_role("combobox").select_option("10 min per second")
    expect(state).to_have_text("paused")
    assert served.node("node-0")["metadata"]["annotations"]["batkube.io/speed"] == "600"
    target_s = paused_at // 1_000_000 + 900
    bar.get_by_role("textbox", name="Run until").fill(str(target_s))
    page.keyboard.press("Enter")
    expect(state).to_contain_text("runs until")
    expect(state).to_have_text("paused")
    wait_until(page, f"window.batkube.end() === {target_s * 1_000_000}")
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(state).to_have_text("running")
    wait_until(page, f"window.batkube.end() > {(target_s + 60) * 1_000_000}")
    assert instant.input_value() != ""


def pod_of(name: str) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "batch"}]}}


def phase_of(served: ServedPage, name: str) -> str:
    return str(served.api.get(f"/api/v1/namespaces/default/pods/{name}")["status"]["phase"])


def test_the_yaml_of_nodes_and_pods_is_that_of_the_api(open_page: PageOpener, served: ServedPage) -> None:
    served.api.create("/api/v1/namespaces/default/pods", pod_of("shown"))
    page = open_page(url=served.url).browser_page
    panel = select_node(page, "node-2")
    panel.get_by_text("YAML", exact=True).click()

    expect(panel.locator("pre")).to_contain_text(f"uid: {served.node('node-2')['metadata']['uid']}")
    expect(panel.locator("pre")).not_to_contain_text("managedFields")
    assert panel.get_by_text("Why?").count() == 0
    page.get_by_role("combobox", name="Find").fill("shown")
    page.keyboard.press("Enter")
    panel.get_by_text("YAML", exact=True).click()
    expect(panel.locator("pre")).to_contain_text("image: batch")
    # It stays open while the page follows the cluster.
    page.wait_for_timeout(700)
    expect(panel.locator("pre")).to_contain_text("image: batch")
    panel.get_by_text("YAML", exact=True).click()
    served.api.delete("/api/v1/namespaces/default/pods/shown", gracePeriodSeconds=0)
    panel.get_by_text("YAML", exact=True).click()
    expect(panel.locator("pre.refused")).to_contain_text("does not exist any more")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"action": "explode"}, 400),
        ({"action": "cordon", "node": "a/../b"}, 400),
        ({"action": "cordon", "node": "node-0", "more": 1}, 400),
        ({"action": "cordon"}, 400),
        ({"action": "cordon", "node": "nothing"}, 200),
    ],
)
def test_commands_are_checked(served: ServedPage, body: object, status: int) -> None:
    parts = urlsplit(served.url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    headers = {TOKEN_HEADER: parts.path.strip("/")}
    connection.request("POST", f"{parts.path}act", json.dumps(body), headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()

    assert response.status == status
    if status == 200:
        assert json.loads(content) == {"message": 'nodes "nothing" not found', "isRefused": True}
