"""The script and the style that the wheel contains are those of the sources in page/."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY

PAGE, STATIC = REPOSITORY / "page", REPOSITORY / "src" / "batkube" / "page" / "static"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of page/ with its pinned tools."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("needs Node 20 or newer, with npm")
    folder = tmp_path_factory.mktemp("sources") / "page"
    shutil.copytree(PAGE, folder, ignore=shutil.ignore_patterns("node_modules"))
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    installation = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if installation.returncode:
        pytest.skip(f"needs a package registry for npm: {installation.stderr.strip()[-200:]}")
    return folder


def test_the_shipped_files_are_built_from_the_sources(sources: Path, tmp_path: Path) -> None:
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=sources, check=True, capture_output=True)

    for name in ("page.js", "page.css", "widget.js"):
        built, shipped = (tmp_path / name).read_bytes(), (STATIC / name).read_bytes()
        assert built == shipped, f"{name} is not up to date: run `npm ci && npm run build` in page/"


def test_the_sources_have_no_type_errors(sources: Path) -> None:
    check = subprocess.run(["npm", "run", "check"], cwd=sources, capture_output=True, text=True, check=False)

    assert check.returncode == 0, check.stdout


def test_the_page_has_no_dependencies_and_its_tools_are_pinned() -> None:
    package = json.loads((PAGE / "package.json").read_text())
    lock = json.loads((PAGE / "package-lock.json").read_text())

    assert "dependencies" not in package
    assert all(version[0].isdigit() for version in package["devDependencies"].values())
    for name, entry in lock["packages"].items():
        # No `resolved`: the address of a registry. The hash identifies the content.
        assert "resolved" not in entry, name
        assert name == "" or "integrity" in entry, name
