"""Scripts of containers have the outcome of a real shell, or are reported as unsupported."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.execution.scripts.random_scripts import random_script

from batkube.execution.containers.plans import plan_of
from batkube.execution.pods.container_plan import ContainerPlan
from batkube.execution.scripts.environment import ContainerFiles, Environment, VolumeFiles
from batkube.execution.scripts.interpreter import ScriptOutcome, run_script
from batkube.execution.scripts.lexer import UnsupportedScript
from batkube.kernel.instants import Instant, duration, seconds

POD: dict[str, Any] = {
    "metadata": {"name": "p-0", "namespace": "default", "uid": "u", "annotations": {"index": "3"}},
    "spec": {
        "nodeName": "n",
        "restartPolicy": "Never",
        "volumes": [{"name": "own", "emptyDir": {}}, {"name": "host", "hostPath": {"path": "/tmp/x"}}],
    },
}
MOUNTS = [{"name": "own", "mountPath": "/data"}, {"name": "host", "mountPath": "/host"}]


def ran(script: str, files: VolumeFiles | None = None, now: int = 0, **variables: str | None) -> ScriptOutcome:
    disk = ContainerFiles(files or VolumeFiles(), POD, {"name": "c", "volumeMounts": MOUNTS}, Instant(now))
    return run_script(script, Environment(variables), disk)


@pytest.mark.parametrize(
    ("script", "length_s", "code"),
    [
        ("if true; then\n  exit 3\nfi\nexit 0", 0, 3),
        ("if [ 1 -ne 1 ]; then\n  exit 3\nelse\n  exit 0\nfi", 0, 0),
        ("if [ $(expr ${INDEX} % 2) -ne 0 ]; then\n exit 1\nelse\n exit 0\nfi", 0, 1),
        ("test -r /data || exit 4; sleep 2", 2, 0),
        ("test -r /data/none || exit 4; sleep 2", 0, 4),
        ("false || sleep 3; true && sleep 4", 7, 0),
        ("for i in 1 2 3; do sleep $i; done; exit 9", 6, 9),
        ("n=0; while [ $n -lt 4 ]; do sleep 2; n=$((n + 1)); done", 8, 0),
        ("until false; do sleep 5; break; done", 5, 0),
        ("set -e\nfalse\nsleep 9", 0, 1),
        ("set -e\nfalse || true\nsleep 9", 9, 0),
        ("trap 'exit 0' TERM; sleep 30 & wait", 30, 0),
        ("sleep 5 & sleep 2; exit 1", 2, 1),
        ("if [ \"$NAME\" = 'a b' ]; then exit 5; fi", 0, 5),
        ('[ -z "$NONE" ] && exit 6', 0, 6),
        ("exec sleep 4", 4, 0),
        ("echo done > /data/out 2>&1; [ -f /data/out ]", 0, 0),
        ("echo ok > /tmp/x; sleep 3; test -f /tmp/x && rm /tmp/x; test -f /tmp/x || exit 4", 3, 4),
        ("mkdir /tmp/d; touch /tmp/d/x; [ -d /tmp/d ] && [ -f /tmp/d/x ] && [ ! -d /tmp/d/x ] && exit 5", 0, 5),
        ("rm -rf /tmp/d; cat /tmp/d || exit 6", 0, 6),
        ("! true; exit $?", 0, 1),
        ("# nothing\nsleep 1 # a second", 1, 0),
    ],
)
def test_a_script_has_the_duration_and_exit_code_of_a_shell(script: str, length_s: int, code: int) -> None:
    assert ran(script, INDEX="3", NAME="a b") == ScriptOutcome(seconds(length_s), code)


@pytest.mark.parametrize(
    "script", ["while true; do date; sleep 1; done", "tail -f /dev/null", "sleep inf", "sleep inf & wait"]
)
def test_an_endless_script_is_recognised(script: str) -> None:
    assert ran(script).length is None


@pytest.mark.parametrize(
    "script",
    [
        "if curl -s http://x; then exit 1; fi",
        "mysqladmin ping || exit 1; sleep 5",
        "sleep $((RANDOM % 10))",
        "[ -f /etc/passwd ] && exit 1",
        "cat x | grep y && exit 1",
        "case $1 in a) exit 1;; esac",
        "f() { exit 1; }; f",
        "while [ ! -f /data/ready ]; do sleep 1; done",
        "exit $UNKNOWN",
        "python train.py",
        "echo 'open",
        "sleep soon",
    ],
)
def test_a_script_that_depends_on_an_unknown_value_is_unsupported(script: str) -> None:
    with pytest.raises(UnsupportedScript):
        ran(script, UNKNOWN=None)


def test_an_unknown_program_is_reported_as_a_guess() -> None:
    assert ran("wget http://x/data; sleep 30") == ScriptOutcome(seconds(30), 0, "wget")


def test_a_file_on_the_node_outlives_the_pod_that_wrote_it_and_one_of_the_pod_does_not() -> None:
    once = "if [[ -r /{0}/foo ]]\nthen\n exit 0\nelse\n touch /{0}/foo\n exit 42\nfi"
    files = VolumeFiles()
    assert ran(once.format("host"), files).exit_code == 42
    assert ran(once.format("host"), files).exit_code == 0
    assert ran(once.format("data"), files).exit_code == 42
    files.forget("pod u")
    assert ran(once.format("data"), files).exit_code == 42


def test_a_file_exists_only_after_it_was_written() -> None:
    files = VolumeFiles()
    ran("sleep 10; touch /data/late", files)
    assert ran("test -e /data/late", files, now=seconds(9)).exit_code == 1
    assert ran("test -e /data/late", files, now=seconds(10)).exit_code == 0


def test_a_pods_fields_are_variables_of_its_script() -> None:
    env = [
        {"name": "INDEX", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['index']"}}},
        {"name": "TWICE", "value": "$(INDEX)$(INDEX)"},
    ]
    container = {"name": "c", "env": env, "command": ["sh", "-c", "sleep $TWICE; exit $(INDEX)"]}
    assert plan_of(POD, container) == ContainerPlan(seconds(33), 3)


def test_an_unsupported_script_has_the_default_plan_marked_as_a_guess() -> None:
    plan = plan_of(POD, {"name": "c", "command": ["sh", "-c", "curl x || exit 1"]})
    assert (plan.length, plan.exit_code) == (seconds(10), 0)
    assert plan.guess_reason == "it depends on the unknown exit status of `curl`"
    assert not plan_of(POD, {"name": "c", "command": ["/server"]}).guess_reason


class Shell:
    """A real shell, whose `sleep` takes no time and is counted."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._log = folder, folder / "slept"
        (folder / "bin").mkdir()
        sleep = folder / "bin" / "sleep"
        sleep.write_text(f'#!/bin/sh\nfor one in "$@"; do echo $one; done >> {self._log}\n', encoding="ascii")
        sleep.chmod(0o755)

    def run(self, shell: str, script: str, variables: dict[str, str]) -> tuple[int, int] | None:
        """Return the exit code of a script and how long it sleeps; None if it does not end."""
        data = self._folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        self._log.write_text("", encoding="ascii")
        environment = {**variables, "PATH": f"{self._folder / 'bin'}:/usr/bin:/bin"}
        with subprocess.Popen(
            [shell, "-c", script.replace("/data", str(data))],
            env=environment,
            cwd=data,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                code = process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return None
        return code, sum(duration(line) for line in self._log.read_text(encoding="ascii").split())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_random_scripts_have_the_outcome_of_real_shells_or_are_unsupported(shell: Shell, first: int) -> None:
    variables = {"X": "2", "Z": "a b"}
    understood = 0
    for script in map(random_script, range(first, first + 50)):
        try:
            outcome = ran(script, **variables)
        except UnsupportedScript:
            continue
        if not outcome.unknown_program:
            understood += 1
            expected = None if outcome.length is None else (outcome.exit_code, outcome.length)
            # Busybox's shell, and that of Debian, are like dash; that of Red Hat is bash. `[[` is beyond dash.
            for program in ("dash", "bash"):
                if shutil.which(program) and not (program == "dash" and "[[" in script):
                    assert shell.run(program, script, variables) == expected, script
    assert understood > 10


@pytest.mark.parametrize(
    ("script", "length_s", "code"),
    [
        ("(exit 3); sleep 2", 2, 0),
        ("(X=9; sleep 1); sleep $X", 4, 0),
        ("export N=5; sleep $N", 5, 0),
        ("for i in $(seq 1 4); do sleep 1; done", 4, 0),
        ("x=$(sleep 2; echo 3); sleep $x", 5, 0),
        ("set -e; x=$(false); sleep 9", 0, 1),
        ("false & wait $!", 0, 1),
        ("(sleep 5; exit 2) & pid=$!; sleep 1; wait $pid; exit $?", 5, 2),
        ("sleep ${PAUSE:-7}", 7, 0),
        ("for i in 1 2; do for j in 1 2; do break 2; done; done; exit 4", 0, 4),
        ("timeout 10 sleep 3", 3, 0),
        ("env A=b sleep 3", 3, 0),
        ("[ -d /data ] && [ ! -f /data ] && exit 6", 0, 6),
        ("mkdir /data/a; touch /data/a/b; rm -r /data/a; [ -e /data/a/b ] || exit 5", 0, 5),
        ("touch /data/none/b || exit 5", 0, 5),
    ],
)
def test_subshells_and_programs_that_run_others_are_supported(script: str, length_s: int, code: int) -> None:
    assert ran(script, X="3") == ScriptOutcome(seconds(length_s), code)


@pytest.mark.parametrize(
    ("script", "about"),
    [
        ("for f in /data/*; do sleep 1; done", "values of a `for` loop are unknown"),
        ("for i in {1..5}; do sleep 1; done", "braces"),
        ("trap 'exit 3' EXIT; sleep 1", "trap"),
        ("set -u; sleep 1; echo $NONE", "set -u"),
        ("sleep 5 & kill $!; wait", "kill"),
        ("read X; sleep $X", "read"),
        (". /env.sh; sleep 5", "not supported"),
        ("sleep 5; exec nginx", "nginx"),
        ("wget -O /data/x u; [ -f /data/x ] || exit 1; sleep 5", "unknown whether the file /data/x exists"),
        ("sleep 5s10", "not a duration"),
        ('[ -n "$MYSQL_SERVICE_HOST" ] && exit 1', "unknown value"),
        ("IFS=,; sleep 1", "IFS"),
        ("break", "outside of a loop"),
        ("./test && exit 1", "./test"),
        ("if true; then fi", "a command is missing"),
    ],
)
def test_constructs_in_which_shells_or_images_differ_are_unsupported(script: str, about: str) -> None:
    with pytest.raises(UnsupportedScript, match=re.escape(about)):
        ran(script)


def test_no_script_takes_long_to_interpret_or_grows() -> None:
    for script in (
        "x=aa; while [ -n $x ]; do x=$x$x; done",
        "x=0; while [ $x -lt 99999999 ]; do x=$((x + 1)); done",
        "for a in $(seq 9999); do for b in $(seq 9999); do true; done; done",
    ):
        with pytest.raises(UnsupportedScript, match=r"too long|more than"):
            ran(script)


def test_arguments_and_options_of_a_shell_are_applied() -> None:
    def plan(*command: str, **more: list[Any]) -> ContainerPlan:
        return plan_of(POD, {"name": "c", "command": list(command), **more})

    assert plan("sh", "-c", "sleep $1; exit $2", "sh", "7", "3") == ContainerPlan(seconds(7), 3)
    assert plan("sh", "-c", 'exec "$@"', "sh", "sleep", "8") == ContainerPlan(seconds(8), 0)
    assert plan("bash", "-e", "-o", "pipefail", "-c", "false; sleep 5") == ContainerPlan(seconds(0), 1)
    assert plan("exit", "3") == ContainerPlan(seconds(10), 0, has_default_length=True)  # no program has this name
    some = {"envFrom": [{"configMapRef": {"name": "m"}}]}
    assert plan("sh", "-c", "sleep $LONG", **some).guess_reason == "the duration of `sleep` is unknown"


def test_every_run_of_a_container_starts_with_a_fresh_image() -> None:
    files = VolumeFiles()
    assert ran("touch /tmp/x; [ -f /tmp/x ] && exit 3", files).exit_code == 3
    with pytest.raises(UnsupportedScript):
        ran("[ -f /tmp/x ] && exit 3", files, now=seconds(5))


@pytest.mark.parametrize(
    ("script", "own", "volumes"),
    [("cat /data/x", False, True), ("touch /tmp/x; cat /tmp/x", True, False), ("sleep 3; false", False, False)],
)
def test_reads_of_own_files_and_of_volumes_are_recorded(script: str, own: bool, volumes: bool) -> None:
    disk = ContainerFiles(VolumeFiles(), POD, {"name": "c", "volumeMounts": MOUNTS}, Instant(0))
    run_script(script, Environment({}), disk)
    assert (disk.has_read_own_files, disk.has_read_volumes) == (own, volumes)


def test_an_aborted_run_writes_nothing_more() -> None:
    files = VolumeFiles()
    disk = ContainerFiles(files, POD, {"name": "c", "volumeMounts": MOUNTS}, Instant(0))
    run_script("touch /data/x; sleep 10; touch /data/y; rm /data/x", Environment({}), disk)
    disk.discard_after(Instant(seconds(5)))
    assert ran("test -e /data/x && test ! -e /data/y", files, now=seconds(20)).exit_code == 0


def test_a_file_exists_until_it_is_removed() -> None:
    files = VolumeFiles()
    ran("touch /data/x; sleep 10; rm /data/x", files)
    assert ran("test -e /data/x", files, now=seconds(9)).exit_code == 0
    assert ran("test -e /data/x", files, now=seconds(10)).exit_code == 1
