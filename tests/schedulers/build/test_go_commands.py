"""Go commands of a build: progress while a program compiles, and the errors of failed compilations."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.schedulers.build.go_commands import compile_program, progress_text
from batkube.schedulers.build.toolchains import GoCommandFailed
from batkube.schedulers.recipes import BuildRecipe, local_recipe


def compiler(code: str) -> list[str]:
    """Return the command of a program that stands in for `go build -v`."""
    return [sys.executable, "-c", f"import sys\n{code}"]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "go.mod").write_text("module example.com/mine\n\ngo 1.24\n")
    (tmp_path / "main.go").write_text("package main\n\nfunc main() {}\n")
    return tmp_path


def test_the_progress_bounds_the_remaining_time_from_the_packages_compiled_so_far() -> None:
    assert progress_text(138, 1380, 60) == "compiling: 138 of at most 1380 packages, at most 9 min left"
    assert progress_text(1380, 1380, 600) == "compiling: 1380 of at most 1380 packages, at most 0 s left"


def test_a_compilation_is_reported_twenty_times(module: Path) -> None:
    reports: list[str] = []
    command = compiler("for number in range(100): print('example.com', number, file=sys.stderr)")

    compile_program(local_recipe(module, "."), command, module, 100, reports.append)

    assert [int(re.findall(r"\d+", report)[0]) for report in reports] == list(range(5, 101, 5))


def test_errors_in_a_folder_are_those_of_the_user_and_begin_with_the_failed_package(module: Path) -> None:
    command = compiler("sys.exit('fmt\\nexample.com/lib\\n# example.com/mine\\n./main.go:3: undefined: x')")

    with pytest.raises(InputError, match="does not compile") as caught:
        compile_program(local_recipe(module, "."), command, module, 3, lambda _: None)

    assert str(caught.value).endswith("# example.com/mine\n./main.go:3: undefined: x")
    assert "example.com/lib" not in str(caught.value)


def test_errors_in_a_published_module_fail_the_build(tmp_path: Path) -> None:
    recipe = BuildRecipe("theirs", "example.com/theirs", "v1.0.0", "./cmd")

    with pytest.raises(GoCommandFailed, match="undefined: x"):
        compile_program(
            recipe, compiler("sys.exit('# example.com/theirs\\n./main.go:3: undefined: x')"), tmp_path, 3, print
        )
