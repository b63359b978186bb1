"""Scripts of containers are followed as the shell itself follows them, or not at all."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.execution.container_plans import ContainerPlan, plan_of
from batkube.execution.scripts.running import ScriptOutcome, run_script
from batkube.execution.scripts.surroundings import Files, Mounts
from batkube.execution.scripts.words import NotUnderstood
from batkube.kernel.instants import Instant, seconds

POD: dict[str, Any] = {
    "metadata": {"name": "p-0", "namespace": "default", "uid": "u", "annotations": {"index": "3"}},
    "spec": {
        "nodeName": "n",
        "restartPolicy": "Never",
        "volumes": [{"name": "own", "emptyDir": {}}, {"name": "host", "hostPath": {"path": "/tmp/x"}}],
    },
}
MOUNTS = [{"name": "own", "mountPath": "/data"}, {"name": "host", "mountPath": "/host"}]


def ran(script: str, files: Files | None = None, now: int = 0, **variables: str | None) -> ScriptOutcome:
    disk = Mounts(files or Files(), POD, {"volumeMounts": MOUNTS}, Instant(now))
    return run_script(script, variables, disk)


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
        ("! true; exit $?", 0, 1),
        ("# nothing\nsleep 1 # a second", 1, 0),
    ],
)
def test_a_script_is_followed(script: str, length_s: int, code: int) -> None:
    assert ran(script, INDEX="3", NAME="a b") == ScriptOutcome(seconds(length_s), code)


@pytest.mark.parametrize(
    "script", ["while true; do date; sleep 1; done", "tail -f /dev/null", "sleep inf", "sleep inf & wait"]
)
def test_a_script_without_end_is_known_for_one(script: str) -> None:
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
def test_what_depends_on_what_nobody_knows_is_not_understood(script: str) -> None:
    with pytest.raises(NotUnderstood):
        ran(script, UNKNOWN=None)


def test_a_program_that_nobody_knows_is_said_to_be_a_guess() -> None:
    assert ran("wget http://x/data; sleep 30") == ScriptOutcome(seconds(30), 0, "wget")


def test_a_file_on_the_node_outlives_the_pod_that_wrote_it_and_one_of_the_pod_does_not() -> None:
    once = "if [[ -r /{0}/foo ]]\nthen\n exit 0\nelse\n touch /{0}/foo\n exit 42\nfi"
    files = Files()
    assert ran(once.format("host"), files).exit_code == 42
    assert ran(once.format("host"), files).exit_code == 0
    assert ran(once.format("data"), files).exit_code == 42
    files.remove("pod u")
    assert ran(once.format("data"), files).exit_code == 42


def test_a_file_is_there_only_once_it_was_written() -> None:
    files = Files()
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


def test_a_script_that_is_not_understood_does_what_is_usual_with_a_doubt() -> None:
    plan = plan_of(POD, {"name": "c", "command": ["sh", "-c", "curl x || exit 1"]})
    assert (plan.length, plan.exit_code) == (seconds(10), 0)
    assert plan.doubt == "what happens depends on how `curl` ends"
    assert not plan_of(POD, {"name": "c", "command": ["/server"]}).doubt


numbers = st.integers(0, 4)
tests = st.one_of(
    st.sampled_from(["true", "false", ":"]),
    st.builds("[ {} {} {} ]".format, numbers, st.sampled_from(["-eq", "-ne", "-lt", "-ge"]), numbers),
    st.builds("[ $(({} {} {})) -gt 2 ]".format, numbers, st.sampled_from("+-*"), numbers),
    st.builds("test $X = {}".format, numbers),
)
steps = st.one_of(tests, st.builds("exit {}".format, numbers), st.builds("X={}".format, numbers))


def composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}\n{}".format, inner, inner),
        st.builds("if {}; then\n{}\nelse {}; fi".format, tests, inner, inner),
        st.builds("if {}\nthen {}; elif {}; then {}\nfi".format, tests, inner, tests, inner),
        st.builds("{} && {} || {}".format, tests, steps, steps),
        st.builds("for X in 1 2; do {}; done".format, inner),
        st.builds("! {}".format, tests),
        st.builds("set -e; {}".format, inner),
    )


@settings(max_examples=150, deadline=None)
@given(st.recursive(steps, composed, max_leaves=12))
def test_scripts_end_as_a_real_shell_ends_them(script: str) -> None:
    real = subprocess.run(
        ["sh", "-c", script], env={"X": "2", "PATH": "/usr/bin:/bin"}, capture_output=True, check=False
    )
    assert ran(script, X="2").exit_code == real.returncode, script
