"""Schedulers in C, Python and bash on the virtual clock of a run."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import batkube
from batkube.kernel.errors import InputError, RunFailed

PROGRAMS = Path(__file__).parent.parent.parent / "examples" / "programs"
OUTPUTS = ("jobs.csv", "pods.csv", "journal.jsonl", "machine_states.csv", "fidelity.json")


@pytest.fixture(scope="module")
def in_c(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    program = tmp_path_factory.mktemp("c") / "random_scheduler"
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-O2", "-o", str(program), str(PROGRAMS / "random_scheduler.c")]
    subprocess.run(command, check=True)
    return f"preload:{program}"


def workload(folder: Path, count: int, gap_s: int = 0) -> Path:
    jobs = [{"id": str(each), "subtime": each * gap_s, "res": 1, "profile": "work"} for each in range(count)]
    path = folder / "jobs.json"
    path.write_text(json.dumps({"nb_res": 1, "jobs": jobs, "profiles": {"work": {"type": "delay", "delay": 20}}}))
    return path


def outputs(run: batkube.Run) -> dict[str, bytes]:
    return {name: (run.path / name).read_bytes() for name in OUTPUTS}


def test_a_scheduler_in_c_is_on_the_virtual_clock_and_repeatable(in_c: str, tmp_path: Path) -> None:
    jobs = workload(tmp_path, 8)
    first, second = (batkube.run(workload=jobs, platform="3x1", scheduler=in_c) for _ in range(2))
    other = batkube.run(workload=jobs, platform="3x1", scheduler=in_c, seed=5)

    # Three at once, each for 20 s; the scheduler lists pods once a second.
    assert sorted(first.jobs["starting_time"]) == [0, 0, 0, 20, 20, 20, 40, 40]
    assert outputs(first) == outputs(second)
    assert json.loads((first.path / "fidelity.json").read_text()) == []
    assert list(other.jobs["starting_time"]) == list(first.jobs["starting_time"])
    assert list(other.pods["node"]) != list(first.pods["node"])


def test_the_official_python_client_is_on_the_virtual_clock_and_repeatable(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes")
    jobs = workload(tmp_path, 8, gap_s=3)
    scheduler = f"python:{PROGRAMS / 'random_scheduler.py'}"
    first, second = (batkube.run(workload=jobs, platform="3x1", scheduler=scheduler) for _ in range(2))

    assert list(first.jobs["starting_time"]) == [0, 3, 6, 20, 23, 26, 40, 43]
    assert outputs(first) == outputs(second)
    log = (first.path / "scheduler" / "log.txt").read_text().splitlines()
    assert [line.split()[0] for line in log[:4]] == [
        f"2000-01-01T00:00:{second}+00:00" for second in ("00", "03", "06", 20)
    ]


def test_a_program_in_python_finds_modules_on_pythonpath(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler of the examples is a module on PYTHONPATH; the program only runs it."""
    pytest.importorskip("kubernetes")
    (tmp_path / "modules").mkdir()
    shutil.copy(PROGRAMS / "random_scheduler.py", tmp_path / "modules" / "mine.py")
    (tmp_path / "program.py").write_text("import runpy\nrunpy.run_module('mine', run_name='__main__')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))

    run = batkube.run(workload=workload(tmp_path, 3), platform="3x1", scheduler=f"python:{tmp_path / 'program.py'}")

    assert set(run.jobs["starting_time"]) == {0.0}


def test_the_folder_for_temporary_files_of_a_program_is_deleted_when_it_ends(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes")
    program = tmp_path / "program.py"
    program.write_text(
        "import runpy, tempfile\n"
        "file, path = tempfile.mkstemp()\n"
        "print(path, flush=True)\n"
        f"runpy.run_path({str(PROGRAMS / 'random_scheduler.py')!r}, run_name='__main__')\n"
    )

    run = batkube.run(workload=workload(tmp_path, 1), platform="1x1", scheduler=f"python:{program}")

    path = Path((run.path / "scheduler" / "log.txt").read_text().split()[0])
    assert path.parent.name == "temporary"
    assert not path.parent.exists()


WHERE = """
import os, subprocess, sys
for name in ("HOME", "KUBECONFIG", "TMPDIR"):
    print(os.environ[name])
print(sys.argv[1])
subprocess.run(["head", "-n1", os.environ["KUBECONFIG"]])  # which inherits no descriptors
sys.exit("seen")
"""


@pytest.mark.parametrize("clock", ["python", "preload"])
def test_a_program_sees_the_same_paths_in_every_run(clock: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WHERE)
    command = "[./mine.py, '{folder}']" if clock == "python" else f"[{sys.executable}, ./mine.py, '{{folder}}']"
    catalogue = tmp_path / "schedulers.yaml"
    catalogue.write_text(f"mine: {{about: mine, scheduler-name: x, command: {command}, clock: {clock}}}")
    texts = []
    for out in (tmp_path / "one", tmp_path / "another" / "place"):
        with pytest.raises(RunFailed, match="seen"):
            batkube.run(workload=workload(tmp_path, 1), platform="1x1", scheduler="mine", catalogue=catalogue, out=out)
        texts.append((out / "scheduler" / "log.txt").read_text().splitlines())

    assert texts[0] == texts[1]
    home, kubeconfig, temporary, folder, first_line, _ = texts[0]
    assert kubeconfig == f"{home}/kubeconfig"
    assert folder == home
    assert Path(temporary).parent == Path(home).parent
    assert first_line


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="needs bash, curl and jq")
def test_a_scheduler_in_bash_places_twenty_pods_and_is_repeatable(tmp_path: Path) -> None:
    jobs = workload(tmp_path, 20)
    scheduler = f"preload:{PROGRAMS / 'bash_scheduler.sh'}"
    first, second = (batkube.run(workload=jobs, platform="20x1", scheduler=scheduler) for _ in range(2))

    assert set(first.jobs["starting_time"]) == {0.0}
    assert first.pods["node"].nunique() == 20
    assert outputs(first) == outputs(second)


def test_a_program_on_the_real_clock_is_rejected_in_exact_mode(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="runs on the machine's clock"):
        batkube.run(workload=workload(tmp_path, 1), platform="1x1", scheduler="real:/bin/cat")


def test_a_missing_program_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the executable '\./nowhere' does not exist"):
        batkube.run(workload=workload(tmp_path, 1), platform="1x1", scheduler="preload:./nowhere")


IN_A_POD = """
import http.client, json, os, ssl, time

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"
token = open(ACCOUNT + "token").read()
trust = ssl.create_default_context(cafile=ACCOUNT + "ca.crt")
host, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])

def ask(method, path, body=None):
    connection = http.client.HTTPSConnection(host, port, context=trust)
    connection.request(method, path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status < 300, answer.read()
    return json.load(answer)

print(open(ACCOUNT + "namespace").read(), flush=True)
while True:
    for pod in ask("GET", "/api/v1/pods")["items"]:
        if "nodeName" not in pod["spec"]:
            name = pod["metadata"]["name"]
            target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            ask("POST", f"/api/v1/namespaces/default/pods/{name}/binding", json.dumps(binding))
            print("bound", name, flush=True)
    time.sleep(10)
"""


@pytest.mark.parametrize("kind", ["preload", "python"])
def test_an_in_cluster_program_finds_its_service_account_and_the_api(kind: str, tmp_path: Path) -> None:
    """Files of the service account are redirected by the preload library, or are in a mount namespace."""
    (tmp_path / "mine.py").write_text(IN_A_POD)
    command = f"[{sys.executable}, ./mine.py]" if kind == "preload" else "[./mine.py]"
    file = tmp_path / "schedulers.yaml"
    file.write_text(
        f"mine: {{about: mine, scheduler-name: default-scheduler, command: {command}, clock: {kind}, in-cluster: true}}"
    )
    try:
        run = batkube.run(workload=workload(tmp_path, 1, 1), platform="1x1", scheduler="mine", catalogue=file)
    except InputError as refusal:
        if "its own mount namespace" not in str(refusal):
            raise
        pytest.skip("needs mount namespaces, which this machine does not allow")

    assert (run.path / "scheduler" / "log.txt").read_text().splitlines() == ["kube-system", "bound w0-0"]
    assert list(run.jobs["starting_time"]) == [0.0]
    assert not Path("/var/run/secrets/kubernetes.io").exists()


def test_a_program_finds_its_mounts_at_their_paths_in_the_container(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os, sys\n"
        "print(sorted(os.listdir('/etc/mine/certs')), os.path.exists('/etc/passwd'), flush=True)\n"
        "sys.exit('seen')\n"
    )
    file = tmp_path / "schedulers.yaml"
    file.write_text(
        "mine: {about: mine, scheduler-name: x, command: [./mine.py], clock: python, "
        "mounts: {/etc/mine/certs: '{certificates}'}}"
    )
    try:
        with pytest.raises(RunFailed, match=r"(?s)\['tls.crt', 'tls.key'\] True.*seen"):
            batkube.run(
                workload=workload(tmp_path, 1), platform="1x1", scheduler="mine", catalogue=file, out=tmp_path / "out"
            )
    except InputError as refusal:
        if "its own mount namespace" not in str(refusal):
            raise
        pytest.skip("needs mount namespaces, which this machine does not allow")
    assert not Path("/etc/mine").exists()
    assert sorted(path.name for path in (tmp_path / "out" / "scheduler").iterdir()) == [
        "certificates",
        "kubeconfig",
        "log.txt",
    ]


def test_a_proxy_port_in_use_is_an_input_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        entry = f"{{about: mine, scheduler-name: x, command: [/bin/cat], clock: preload, proxy-port: {port}}}"
        (tmp_path / "mine.yaml").write_text(f"mine: {entry}")
        with pytest.raises(InputError, match=rf"expects the API at port {port}, which is in use"):
            batkube.run(
                workload=workload(tmp_path, 1), platform="1x1", scheduler="mine", catalogue=tmp_path / "mine.yaml"
            )


def test_calls_that_stay_on_real_time_are_noted(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import signal, time\nsignal.alarm(3600)\ntime.sleep(10**6)\n")
    with pytest.raises(RunFailed):
        batkube.run(
            workload=workload(tmp_path, 1),
            platform="1x1",
            scheduler=f"preload:{sys.executable} {script}",
            out=tmp_path / "out",
        )
    (note,) = json.loads((tmp_path / "out" / "fidelity.json").read_text())
    assert "does not follow virtual time" in str(note)
    assert "alarm and setitimer" in str(note)


def test_a_statically_linked_program_is_rejected(tmp_path: Path) -> None:
    source, program = tmp_path / "static.c", tmp_path / "static"
    source.write_text("#include <unistd.h>\nint main(void) { pause(); }\n")
    if subprocess.run(["cc", "-static", "-o", str(program), str(source)], capture_output=True, check=False).returncode:
        pytest.skip("needs a C compiler and a static C library")
    with pytest.raises(RunFailed, match="dynamically linked"):
        batkube.run(workload=workload(tmp_path, 1), platform="1x1", scheduler=f"preload:{program}")
