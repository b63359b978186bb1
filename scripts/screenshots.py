"""Take the pictures of the page in docs/images/page again, with Debian's chromium.

    python scripts/screenshots.py

Each picture is the page of a run that this script makes: a day of jobs that share the nodes of three zones, some of
which fail, under two policies. The runs are deterministic, and the pictures differ only with the fonts and the version
of the browser. One more is the page of a served cluster, which shows real time.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import batkube
from batkube.page.document import page_of_runs

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "images" / "page"
#: Name, runs, fragment, colour scheme, grouping of the nodes.
SHOTS = (
    ("replay", ("easy",), "#t=30060&node=gpu-7", "light", "zone"),
    ("compared", ("fcfs", "easy"), "#t=30060", "dark", "none"),
)
_WINDOW = {"width": 1360, "height": 900}
_DAY_S = 86_400


def write_inputs(folder: Path) -> None:
    """Write nodes in zones and racks, a day of jobs for them, and failures."""
    pools = (("cpu", 72, {"cpu": "16", "memory": "64Gi", "pods": "110"}),
             ("gpu", 24, {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}))  # fmt: skip
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"{pool}-{number}",
                "labels": {"topology.kubernetes.io/zone": "abc"[number % 3], "pool": pool},
            },
            "status": {"capacity": capacity},
        }
        for pool, count, capacity in pools
        for number in range(count)
    ]
    (folder / "nodes.yaml").write_text("\n---\n".join(map(json.dumps, nodes)))
    generator = random.Random(4)
    lengths = [int(generator.lognormvariate(8, 1)) + 60 for _ in range(60)]
    jobs = [_job(generator, number, lengths) for number in range(1500)]
    workload = {
        "nb_res": len(nodes),
        "jobs": sorted(jobs, key=lambda job: job["subtime"]),
        "profiles": {f"d{length}": {"type": "delay", "delay": length} for length in lengths},
    }
    (folder / "day.json").write_text(json.dumps(workload))
    (folder / "events.yaml").write_text(
        "- {at: 6h, fail: [cpu-5, cpu-6, cpu-40], for: 4h}\n- {at: 8h, drain: [cpu-20, cpu-21, gpu-11], for: 3h}\n"
    )


def _job(generator: random.Random, number: int, lengths: list[int]) -> dict[str, object]:
    length = generator.choice(lengths)
    needs_gpu = generator.random() < 0.25
    requests: dict[str, object] = {
        "cpu": generator.choice((1, 2, 4, 8)),
        "memory": f"{generator.choice((2, 4, 8, 16))}Gi",
    }
    if needs_gpu:
        requests["gpu"] = generator.choice((1, 1, 2, 4, 8))
    return {
        **requests,
        "id": str(number),
        "subtime": round(generator.betavariate(2, 3) * _DAY_S * 0.8),
        "res": generator.choice((1, 1, 1, 2, 4, 8, 16)),
        "walltime": round(length * generator.uniform(1.1, 3)),
        "profile": f"d{length}",
        "user": generator.choice(("anna", "boris", "chen", "dora")),
    }


def take(browser: Browser, page: Path, fragment: str, scheme: str, grouping: str, picture: Path) -> None:
    """Write a picture of the page of finished runs."""
    tab = browser.new_page(viewport=_WINDOW, color_scheme=scheme)
    tab.goto(page.as_uri() + fragment)
    tab.wait_for_function("window.batkube")
    tab.get_by_role("combobox", name="Group by").select_option(grouping)
    tab.wait_for_timeout(1000)
    save(tab, picture)


@contextlib.contextmanager
def served_page(folder: Path) -> Iterator[str]:
    """Serve a cluster, and yield the address of its page."""
    (folder / "rules.yaml").write_text("- {image: 'nginx*', cpu-load: 2}\n")
    options = ["--platform", "16x8,32Gi", "--rules", str(folder / "rules.yaml"), "--out", str(folder / "served")]
    command = [sys.executable, "-m", "batkube", "serve", *options, "--page"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(line.split()[-1] for line in process.stdout if line.startswith("showing at"))
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()


def take_served(browser: Browser, url: str, picture: Path) -> None:
    """Submit pods and drain a node on the page of a served cluster, and write a picture of it."""
    tab = browser.new_page(viewport=_WINDOW)
    tab.goto(url)
    tab.get_by_role("tab", name="Actions").click()
    tab.get_by_label("Copies").fill("60")
    tab.get_by_role("button", name="Submit").click()
    tab.locator(".outcome", has_text="and 59 more").wait_for()
    tab.get_by_role("combobox", name="Find").fill("node-3")
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="Drain").click()
    tab.locator(".outcome", has_text="pods are evicted").wait_for()
    tab.wait_for_timeout(1500)
    save(tab, picture)


def save(tab: Page, picture: Path) -> None:
    """Write a picture of a page with at most 256 colours, and close the page."""
    tab.screenshot(path=picture)
    tab.close()
    with Image.open(picture) as image:
        image.convert("P", palette=Image.Palette.ADAPTIVE, colors=256).save(picture, optimize=True)


def main() -> None:
    """Run the policies, and take every picture."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        write_inputs(folder)
        for policy in ("fcfs", "easy"):
            batkube.run(
                workload=folder / "day.json",
                platform=folder / "nodes.yaml",
                scheduler=f"policy:{policy}",
                events=folder / "events.yaml",
                out=folder / policy,
                progress=False,
            )
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, runs, fragment, scheme, grouping in SHOTS:
            page = folder / f"{name}.html"
            page.write_text(page_of_runs([folder / run for run in runs]), encoding="utf-8")
            take(browser, page, fragment, scheme, grouping, PICTURES / f"{name}.png")
        with served_page(folder) as url:
            take_served(browser, url, PICTURES / "served.png")
        browser.close()


if __name__ == "__main__":
    main()
