"""The environment of external programs: how they find the API, and where they write files."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.programs.program import ExternalProgram
from batkube.programs.startup.command_lines import ProgramFolder
from batkube.programs.startup.environment import environment_of
from batkube.schedulers.clocks import ClockKind
from batkube.schedulers.named_programs import ProgramStart, program_start


def _variables(start: ProgramStart, folder: Path) -> dict[str, str]:
    scheduler = ExternalProgram("it", Path("/programs/it"), start, (), {}, "")
    return environment_of(scheduler, ProgramFolder(folder, "/proc/self/fd/7"), "/proc/self/fd/8", 4711, 1, "").variables


def test_a_program_has_its_own_folder_for_temporary_files(tmp_path: Path) -> None:
    start = ProgramStart((), {}, "", environment={"MINE": "{folder}/mine"})

    assert _variables(start, tmp_path) == {
        "TZ": "UTC",
        "TMPDIR": "/proc/self/fd/8",
        "MINE": "/proc/self/fd/7/mine",
    }


def test_paths_in_the_environment_are_those_of_the_program(tmp_path: Path) -> None:
    variables = _variables(ProgramStart((), {}, "", clock=ClockKind.PYTHON), tmp_path)

    assert (variables["HOME"], variables["KUBECONFIG"]) == ("/proc/self/fd/7", "/proc/self/fd/7/kubeconfig")
    assert str(tmp_path) not in str(variables)


@pytest.mark.parametrize("program", ["volcano", "volcano-controller-manager"])
def test_programs_of_volcano_do_not_share_a_socket(program: str, tmp_path: Path) -> None:
    """Concurrent runs used to share the socket /tmp/klog-socks/klog-klog.sock; one removed it, and results differed."""
    assert _variables(program_start(program), tmp_path)["DEBUG_SOCKET_DIR"] == "/proc/self/fd/8"
