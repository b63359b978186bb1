"""Operators: their custom resource definitions are applied by the server, and helm installs their charts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from batkube.schedulers.build.builder import ensure_built
from batkube.schedulers.build.records import DEFINITIONS
from batkube.schedulers.definitions import decode_definitions
from batkube.schedulers.installed import cache_folder
from batkube.schedulers.named_programs import find_recipe
from clients.kubectl import Kubectl
from clients.serving import Served

CHART = """apiVersion: v2
name: demo
version: 1.0.0
"""
#: In the folder `crds`, which helm installs before everything else of a chart.
DEFINITION = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.demo.example.com}
spec:
  group: demo.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
TEMPLATES = """apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: demo}}
  template:
    metadata: {labels: {app: demo}}
    spec:
      containers:
      - {name: c, image: "demo:{{ .Values.tag }}", resources: {requests: {cpu: {{ .Values.cpu }}}}}
---
apiVersion: demo.example.com/v1
kind: Widget
metadata: {name: "{{ .Release.Name }}"}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: "{{ .Release.Name }}-before"
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {batkube.io/duration: 100ms, batkube.io/exit-code: "{{ .Values.hookCode }}"}}
    spec: {restartPolicy: Never, containers: [{name: c, image: "demo:{{ .Values.tag }}"}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: "{{ .Release.Name }}-test"
  annotations: {helm.sh/hook: test, batkube.io/duration: 1s, batkube.io/exit-code: "{{ .Values.testCode }}"}
spec: {restartPolicy: Never, containers: [{name: t, image: demo}]}
"""
IMAGE = "jsonpath={.spec.template.spec.containers[0].image}"


class Helm:
    """The real helm with a chart for one test, in a new namespace."""

    def __init__(self, binary: Path, cluster: Served, namespace: str, home: Path) -> None:
        self._binary = binary
        self._home = home
        self._options = ["--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace]
        self.chart = home / "demo"
        for folder in ("templates", "crds"):
            (self.chart / folder).mkdir(parents=True)
        (self.chart / "Chart.yaml").write_text(CHART)
        (self.chart / "values.yaml").write_text("replicas: 2\ntag: '1'\ncpu: 1\nhookCode: 0\ntestCode: 0\n")
        (self.chart / "crds" / "widgets.yaml").write_text(DEFINITION)
        (self.chart / "templates" / "all.yaml").write_text(TEMPLATES)

    def __call__(self, *arguments: str | Path, code: int = 0) -> str:
        """Run a command, assert its exit code, and return its output."""
        result = subprocess.run(
            [self._binary, *arguments, *self._options],
            capture_output=True,
            text=True,
            check=False,
            env={"HOME": str(self._home)},
            timeout=120,
        )
        assert result.returncode == code, result.stderr
        return result.stdout + result.stderr


@pytest.fixture
def helm(cluster: Served, kubectl: Kubectl, tmp_path: Path, built_program: Callable[[str], str]) -> Helm:
    """Helm in the namespace of `kubectl`, if it is built."""
    binary = ensure_built(find_recipe(built_program("helm")), cache_folder())
    return Helm(binary, cluster, kubectl.namespace, tmp_path)


@pytest.mark.parametrize("title", ["volcano@1.10.0", "kueue@0.10.0", "scheduler-plugins@0.30.6", "kube-batch@0.5.0"])
def test_definitions_of_schedulers_can_be_applied_twice_and_are_served(
    bare: Served, kubectl_program: Path, tmp_path: Path, built_program: Callable[[str], str], title: str
) -> None:
    binary = ensure_built(find_recipe(built_program(title)), cache_folder())
    definitions = decode_definitions((binary.parent / DEFINITIONS).read_bytes())
    kubectl = Kubectl(kubectl_program, bare.kubeconfig, tmp_path)
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": definitions})

    first = kubectl("apply", "--server-side", "-f", "-", stdin=stdin)
    again = kubectl("apply", "--server-side", "-f", "-", stdin=stdin)

    assert first.count("serverside-applied") == again.count("serverside-applied") == len(definitions)
    for definition in definitions:
        name = definition["metadata"]["name"]
        kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=20s")
        assert kubectl("get", name, "-A").startswith("No resources found")
    kubectl("delete", "-f", "-", stdin=stdin)


#: The folders of the definitions in the Go modules of operators.
MODULES = {
    "github.com/kubeflow/spark-operator/v2": "config/crd/bases",
    "github.com/kubeflow/trainer/v2": "manifests/base/crds",
    "sigs.k8s.io/kueue": "config/components/crd/bases",
    "sigs.k8s.io/scheduler-plugins": "config/crd/bases",
    "volcano.sh/volcano": "config/crd/volcano/bases",
}


@pytest.mark.parametrize("module", MODULES)
def test_definitions_in_the_module_of_an_operator_can_be_applied_twice(
    bare: Served, kubectl_program: Path, tmp_path: Path, module: str
) -> None:
    files = _files_of_module(module, MODULES[module])
    kubectl = Kubectl(kubectl_program, bare.kubeconfig, tmp_path)
    arguments = [word for file in files for word in ("-f", str(file))]

    first = kubectl("apply", "--server-side", *arguments)
    again = kubectl("apply", "--server-side", *arguments)
    conditions = kubectl("wait", "--for=condition=Established", *arguments, "--timeout=20s")
    kubectl("delete", *arguments)

    assert first.count("serverside-applied") == again.count("serverside-applied") >= len(files)
    assert conditions.count("condition met") >= len(files)


def _files_of_module(module: str, folder: str) -> list[Path]:
    """Return the files in a folder of a Go module, in the newest downloaded version."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs Go, whose cache has the modules of operators")
    cache = subprocess.run([go, "env", "GOMODCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    module_path = Path(cache) / f"{module}@v"
    versions = [path for path in module_path.parent.glob(f"{module_path.name}*") if (path / folder).is_dir()]
    if not versions:
        pytest.skip(f"needs the module {module} in Go's cache: go mod download {module}@latest")
    newest = max(versions, key=lambda path: [int(part) for part in re.findall(r"\d+", path.name.partition("@")[2])])
    return sorted((newest / folder).glob("*_*.yaml"))


def test_a_chart_is_installed_upgraded_rolled_back_tested_and_uninstalled(helm: Helm, kubectl: Kubectl) -> None:
    helm("install", "one", helm.chart, "--wait")
    assert "widget.demo.example.com/one" in kubectl("get", "widgets", "-o", "name")
    assert kubectl("get", "job", "one-before", "-o", "jsonpath={.status.succeeded}") == "1"
    helm("upgrade", "one", helm.chart, "--wait", "--set", "tag=2")
    assert kubectl("get", "deployment", "one", "-o", IMAGE) == "demo:2"
    assert kubectl("get", "job", "one-before", "-o", IMAGE) == "demo:2"
    helm("rollback", "one", "1", "--wait")
    assert kubectl("get", "deployment", "one", "-o", IMAGE) == "demo:1"
    assert "Succeeded" in helm("test", "one")
    helm("uninstall", "one", "--wait")
    assert "NotFound" in kubectl.fails("get", "deployment", "one")
    assert "NotFound" in kubectl.fails("get", "widget", "one")


def test_an_upgrade_with_unschedulable_pods_is_rolled_back(helm: Helm, kubectl: Kubectl) -> None:
    helm("install", "one", helm.chart, "--wait")

    output = helm("upgrade", "one", helm.chart, "--atomic", "--timeout", "5s", "--set", "tag=2,cpu=100", code=1)

    assert "has been rolled back" in output
    assert kubectl("get", "deployment", "one", "-o", IMAGE) == "demo:1"
    assert "Rollback to 1" in helm("history", "one")


def test_failed_tests_and_hooks_are_reported(helm: Helm, kubectl: Kubectl) -> None:
    helm("install", "one", helm.chart, "--wait", "--set", "testCode=3")

    tested = helm("test", "one", code=1)
    upgraded = helm("upgrade", "one", helm.chart, "--set", "tag=2,hookCode=1", "--timeout", "30s", code=1)

    assert "pod one-test failed" in tested
    assert "pre-upgrade hooks failed" in upgraded
    assert "BackoffLimitExceeded" in upgraded
    assert kubectl("get", "deployment", "one", "-o", IMAGE) == "demo:1"
