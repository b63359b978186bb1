"""The real kubectl, with a separate home folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

#: Maximum duration of a command, longer than any takes on a busy machine.
_TIMEOUT_S = 60


def build_kubectl() -> Path:
    """Return the program; build it from its Go module on first use. Raises RunFailed if Go is not installed."""
    from batkube.schedulers.build.builder import ensure_built
    from batkube.schedulers.named_programs import find_recipe
    from conformance.real_server import cache_folder

    return ensure_built(find_recipe("kubectl"), cache_folder())


class KubectlResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    #: Standard output and error, in the order of their writes.
    text: str


class Kubectl:
    """Runs kubectl against one cluster, in one namespace."""

    def __init__(self, program: Path, kubeconfig: Path, home: Path, namespace: str = "default") -> None:
        self._program = program
        #: Folder for its caches, temporary files and configuration, instead of the user's.
        self._home = home
        config = yaml.safe_load(kubeconfig.read_text())
        self.namespace = namespace
        config["contexts"][0]["context"]["namespace"] = namespace
        self._kubeconfig = home / f"kubeconfig-{namespace}"
        self._kubeconfig.write_text(yaml.safe_dump(config))
        self._kubeconfig.chmod(0o600)

    def within(self, namespace: str) -> Kubectl:
        """Return a kubectl for another namespace."""
        return Kubectl(self._program, self._kubeconfig, self._home, namespace)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run a command, assert that it succeeds, and return its output."""
        result = self.execute(*arguments, stdin=stdin)
        assert result.code == 0, f"kubectl {' '.join(arguments)}: {result.text}"
        return result.text

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """Run a command, assert that it fails, and return its output."""
        result = self.execute(*arguments, stdin=stdin)
        assert result.code != 0, f"kubectl {' '.join(arguments)} did not fail: {result.text}"
        return result.text

    def execute(
        self, *arguments: str, stdin: str = "", folder: Path | None = None, variables: Mapping[str, str] | None = None
    ) -> KubectlResult:
        """Run a command, and return its result."""
        completed = subprocess.run(
            [str(self._program), *arguments],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            cwd=folder,
            env={**self.environment(), **(variables or {})},
        )
        return KubectlResult(completed.returncode, completed.stdout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that does not end by itself, such as a watch; the caller kills it."""
        return subprocess.Popen(
            [str(self._program), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            env=self.environment(),
        )

    def environment(self) -> dict[str, str]:
        """Return the environment of a command, without the user's own variables."""
        own = {"HOME": str(self._home), "TMPDIR": str(self._home), "KUBECONFIG": str(self._kubeconfig)}
        return {**own, "PATH": os.environ["PATH"], "TZ": "UTC"}
