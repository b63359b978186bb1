"""`batkube show`, and --page of `run` and `serve`."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path

import pytest
from tests.commands import RUN, command, run_in_process, write_study

ADDRESS = re.compile(r"showing at (http://127\.0\.0\.1:\d+/[\w-]{32}/)")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run in `out`."""
    folder = write_study(tmp_path_factory.mktemp("study"))
    assert run_in_process(folder, *RUN, "--quiet").returncode == 0
    return folder


@contextmanager
def shown(folder: Path, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run a command that shows a page; yield its address. It ends without an error on Ctrl-C."""
    process = subprocess.Popen(
        command(*arguments), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        match = next(filter(None, map(ADDRESS.search, process.stdout)), None)
        assert match is not None
        yield match[1], process
    finally:
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "Traceback" not in output


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return unescape(response.read().decode())


def test_show_serves_the_page_behind_a_token_until_it_is_interrupted(study: Path) -> None:
    with shown(study, "show", "out") as (url, _):
        assert "<title>out · Batkube</title>" in fetch(url)
        root = url.rsplit("/", 2)[0]
        for wrong in (f"{root}/", f"{root}/{'x' * 32}/", f"{url}other"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                fetch(wrong)


def test_the_file_has_the_same_bytes_each_time(study: Path) -> None:
    for name in ("a.html", "b.html"):
        result = run_in_process(study, "show", "out", "-o", name)
        assert (result.returncode, result.stdout) == (0, f"wrote {name}\n")

    page = unescape((study / "a.html").read_text())
    assert (study / "a.html").read_bytes() == (study / "b.html").read_bytes()
    assert "default-src 'none'" in page
    assert "connect-src" not in page
    assert not re.search(r"(?:src|href)=[\"']?https?:", page)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), "nowhere: does not exist"),
        ((".",), "is not a run's output folder"),
        (("out", "out", "out"), "shows one run, or two side by side, not 3"),
        (("out", "-o", "page.pdf"), "does not have the extension of an HTML page"),
        (("out", "-o", "page.html", "--port", "8080"), "--port: has no effect with -o"),
        (("out", "-o", "nowhere/page.html"), "nowhere"),
    ],
)
def test_what_cannot_be_shown_is_rejected(study: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run_in_process(study, "show", *arguments)

    assert result.returncode == 2
    assert message in result.stderr
    assert not list(study.glob("page.*"))


def test_a_run_without_its_journal_cannot_be_shown(study: Path) -> None:
    run_in_process(study, *RUN, "--quiet", "--outputs", "pods", "--out", "short")
    result = run_in_process(study, "show", "short")

    assert result.returncode == 2
    assert "journal.jsonl was left out of this run" in result.stderr


def test_the_page_of_a_run_stays_after_it(study: Path) -> None:
    with shown(study, *RUN, "--quiet", "--page", "--out", "live") as (url, process):
        assert process.stdout is not None
        assert any("the page is served until Ctrl-C" in line for line in process.stdout)
        assert "connect-src 'self'" in fetch(url)
        answer = fetch(f"{url}deltas?since=")
        assert '"isOver":true' in answer
        assert '"w0-1"' in answer
    assert (study / "live" / "journal.jsonl").read_bytes() == (study / "out" / "journal.jsonl").read_bytes()


def test_the_page_of_a_served_cluster_has_its_nodes(study: Path) -> None:
    arguments = ("serve", "--platform", "3x4", "--out", "served", "--page", "--quiet")
    with shown(study, *arguments) as (url, process):
        assert process.stdout is not None
        assert next(process.stdout).strip() == "served/kubeconfig"
        answer = fetch(f"{url}deltas?since=")
        assert '"node-2"' in answer
        assert '"isOver":false' in answer
