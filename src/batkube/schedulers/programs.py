"""Which programs can be built, and from which Go modules.

A program is a main package of a published module. Kubernetes' own modules need a word more: k8s.io/kubernetes replaces
its libraries by folders of its repository, which are published as modules of their own with a matching version.
"""

from __future__ import annotations

import re

import msgspec

from batkube.kernel.errors import InputError

_STAGED = re.compile(r"(k8s\.io/[\w.-]+) => \./staging/src/[\w./-]+")


class Program(msgspec.Struct, frozen=True):
    """What to build: a main package of a module, or a main of ours around one."""

    name: str
    module: str
    version: str
    #: The import path of the main package; "" if `main` is its source.
    package: str
    main: str = ""
    #: Whether go.mod is made from the module's own (Kubernetes) rather than just requiring it.
    from_own_go_mod: bool = False
    #: Variables set at link time, so that the program knows its version.
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """`kubectl@1.34.4`."""
        return f"{self.name}@{self.version.removeprefix('v')}"


def _kubernetes(name: str, version: str) -> Program:
    major, minor, _ = version.split(".", 2)
    told = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    variables = tuple(
        (f"{package}.{variable}", value)
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for variable, value in told.items()
    )
    return Program(
        name,
        "k8s.io/kubernetes",
        f"v{version}",
        f"k8s.io/kubernetes/cmd/{name}",
        from_own_go_mod=True,
        variables=variables,
    )


_ETCD_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""

KUBERNETES_VERSION = "1.34.4"
ETCD_VERSION = "3.6.5"
_KUBERNETES_PROGRAMS = ("kubectl", "kube-apiserver", "kube-scheduler", "kube-controller-manager")


def program(title: str) -> Program:
    """Return the program called `NAME` or `NAME@VERSION`."""
    name, _, version = title.partition("@")
    if name in _KUBERNETES_PROGRAMS:
        version = version or KUBERNETES_VERSION
        if not re.fullmatch(r"1\.\d+\.\d+", version):
            raise InputError(title, problem=f"{version} is no version of Kubernetes", remedy=f"write {name}@1.34.4")
        return _kubernetes(name, version)
    if name == "etcd":
        return Program(name, "go.etcd.io/etcd/server/v3", f"v{version or ETCD_VERSION}", "", main=_ETCD_MAIN)
    known = ", ".join((*_KUBERNETES_PROGRAMS, "etcd"))
    raise InputError(title, problem="there is no such program", remedy=f"choose one of {known}")


def go_mod(wanted: Program, own: str) -> str:
    """Return the go.mod that builds a program; `own` is that of its module."""
    if not wanted.from_own_go_mod:
        return f"module batkube/build\n\ngo 1.24.0\n\nrequire {wanted.module} {wanted.version}\n"
    library = "v0" + wanted.version.removeprefix("v1")
    text = re.sub(r"^module .*$", "module batkube/build", own, count=1, flags=re.MULTILINE)
    text = _STAGED.sub(lambda match: f"{match[1]} => {match[1]} {library}", text)
    return text.replace("require (", f"require (\n\t{wanted.module} {wanted.version}", 1)
