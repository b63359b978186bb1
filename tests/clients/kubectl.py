"""The real kubectl, with a home of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

#: Longer than any command of the tests takes on a busy machine.
_SECONDS = 60


def build_kubectl() -> Path:
    """Return the program, built from its Go module on first use; fails with RunFailed where there is no Go."""
    from batkube.schedulers.build.builder import ensure_built
    from batkube.schedulers.named_programs import find_recipe
    from conformance.real_server import cache_folder

    return ensure_built(find_recipe("kubectl"), cache_folder())


class Ended(NamedTuple):
    """What a command left behind."""

    code: int
    #: Both streams, in the order in which they were written.
    text: str


class Kubectl:
    """Runs kubectl against one cluster, in one namespace."""

    def __init__(self, program: Path, kubeconfig: Path, home: Path, namespace: str = "default") -> None:
        self._program = program
        #: Where its caches, temporary files and configuration are; the user's own are not touched.
        self._home = home
        config = yaml.safe_load(kubeconfig.read_text())
        self.namespace = namespace
        config["contexts"][0]["context"]["namespace"] = namespace
        self._kubeconfig = home / f"kubeconfig-{namespace}"
        self._kubeconfig.write_text(yaml.safe_dump(config))
        self._kubeconfig.chmod(0o600)

    def within(self, namespace: str) -> Kubectl:
        """Return the same for another namespace."""
        return Kubectl(self._program, self._kubeconfig, self._home, namespace)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must succeed, and return what it printed."""
        ended = self.ended(*arguments, stdin=stdin)
        assert ended.code == 0, f"kubectl {' '.join(arguments)}: {ended.text}"
        return ended.text

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must fail, and return what it printed."""
        ended = self.ended(*arguments, stdin=stdin)
        assert ended.code != 0, f"kubectl {' '.join(arguments)} did not fail: {ended.text}"
        return ended.text

    def ended(
        self, *arguments: str, stdin: str = "", folder: Path | None = None, variables: Mapping[str, str] | None = None
    ) -> Ended:
        """Run a command to its end, whatever that is."""
        done = subprocess.run(
            [str(self._program), *arguments],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
            cwd=folder,
            env={**self.environment(), **(variables or {})},
        )
        return Ended(done.returncode, done.stdout)

    def started(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that goes on, such as a watch; the caller ends it."""
        return subprocess.Popen(
            [str(self._program), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            env=self.environment(),
        )

    def environment(self) -> dict[str, str]:
        """Return the environment of a command: a bare one, so that nothing of the user's shows."""
        own = {"HOME": str(self._home), "TMPDIR": str(self._home), "KUBECONFIG": str(self._kubeconfig)}
        return {**own, "PATH": os.environ["PATH"], "TZ": "UTC"}
