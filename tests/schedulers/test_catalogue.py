"""The catalogue: programs by name, built in and of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.schedulers.catalogue import read_catalogue
from batkube.schedulers.named_programs import default_catalogue, find_recipe, program_start
from batkube.schedulers.recipes import GoMod


def test_a_name_alone_means_its_default_version() -> None:
    assert (
        find_recipe("kube-scheduler") == find_recipe("kube-scheduler@1.34.4") == find_recipe("kube-scheduler@v1.34.4")
    )
    assert find_recipe("kube-scheduler").title == "kube-scheduler@1.34.4"


@pytest.mark.parametrize("minor", range(19, 37))
def test_every_minor_version_of_kube_scheduler_since_1_19_is_known(minor: int) -> None:
    assert any(version.startswith(f"1.{minor}.") for version in default_catalogue()["kube-scheduler"].versions)


def test_an_unlisted_patch_version_is_built_like_a_listed_one() -> None:
    assert find_recipe("kube-scheduler@1.36.0").go == "1.26"
    assert find_recipe("kube-scheduler@1.19.16").missing_modules == ("vbom.ml/util",)
    assert find_recipe("kube-scheduler@1.31.2").go == ""


def test_a_program_of_kubernetes_has_its_version_as_variables() -> None:
    variables = dict(find_recipe("kube-scheduler@1.33.5").variables)

    assert variables["k8s.io/component-base/version.gitVersion"] == "v1.33.5"
    assert variables["k8s.io/client-go/pkg/version.gitMinor"] == "33"


def test_a_version_has_its_own_configuration_fields() -> None:
    today, old = program_start("kube-scheduler"), program_start("kube-scheduler@1.19.0")

    assert today.configuration["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert old.configuration == {
        **today.configuration,
        "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
        "healthzBindAddress": "{address}",
        "metricsBindAddress": "{address}",
    }
    assert (today.needs, old.needs) == ((), ("policy/v1beta1",))
    assert today.arguments == old.arguments
    assert today.scheduler_name == "default-scheduler"


def test_version_placeholders_are_filled_and_run_placeholders_stay(tmp_path: Path) -> None:
    file = tmp_path / "schedulers.yaml"
    file.write_text(
        "mine: {about: mine, module: m, default: 0.1.0, arguments: ['--is={version}', '--kubeconfig={kubeconfig}'],\n"
        "  configuration: {api: 'v{major}.{minor}', lists: [{at: '{version}', file: '{kubeconfig}'}, 1]}}\n"
    )
    start = program_start("mine", read_catalogue([file]))

    assert start.arguments == ("--is=0.1.0", "--kubeconfig={kubeconfig}")
    assert start.configuration == {"api": "v0.1", "lists": [{"at": "0.1.0", "file": "{kubeconfig}"}, 1]}


def test_a_users_file_adds_and_replaces_programs(tmp_path: Path) -> None:
    file = tmp_path / "schedulers.yaml"
    file.write_text(
        "mine: {about: mine, module: example.com/mine, package: example.com/mine/cmd/x, default: 0.1.0, go-mod: copy}\n"
        "etcd: {about: another one, module: example.com/etcd, default: 9.0.0}\n"
    )
    catalogue = read_catalogue([file])

    assert find_recipe("mine", catalogue).go_mod is GoMod.COPY
    assert find_recipe("etcd", catalogue).module == "example.com/etcd"
    assert find_recipe("kube-scheduler", catalogue) == find_recipe("kube-scheduler")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mine: {about: mine, default: 0.1.0}", ": mine: needs a `module`, a `folder` or a `command`"),
        ("mine: {about: mine, module: m, default: 0.1.0, colour: red}", "unknown field `colour`"),
        ("mine: {about: mine, module: m, default: 0.1.0, go-mod: magic}", ": mine.go-mod: Invalid enum value 'magic'"),
        ("mine: {about: mine, module: m, default: 0.1.0, versions: {0.1.0: {needs: [v1]}}}", "matching regex"),
        ("mine: {about: mine, command: [./x]}", ": mine.clock: a `command` needs a `clock` other than go"),
        ("mine: {about: mine, module: m, default: 0.1.0, clock: preload}", "and only a `command` may"),
        ("mine: {about: mine, command: [./x], clock: sundial}", ": mine.clock: Invalid enum value 'sundial'"),
        (
            "mine: {about: mine, module: m, default: 0.1.0, pod-group: a/v1, pod-group-key: k, pod-group-label: k}",
            ": mine.pod-group-label: cannot be combined with `pod-group-key`",
        ),
        (
            "mine: {about: mine, module: m, default: 0.1.0, pod-group-label: k}",
            ": mine.pod-group-label: needs a `pod-group`",
        ),
        ("[]", "is not a mapping from names to programs"),
        ("mine: 1", ": mine: Expected `object`"),
    ],
)
def test_an_invalid_file_is_rejected_with_place_and_problem(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "schedulers.yaml"
    file.write_text(text)

    with pytest.raises(InputError) as raised:
        read_catalogue([file])
    assert str(file) in str(raised.value)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    "title", ["slurm", "kube-scheduler@latest", "kube-scheduler@1.34", "@1.34.4", "kube-scheduler@", "kube-scheduler@v"]
)
def test_an_unknown_program_or_version_is_an_input_error(title: str) -> None:
    with pytest.raises(InputError, match=r"is not a program of|is not a version of|has no version after the @"):
        find_recipe(title)


def test_a_command_is_relative_to_its_file_and_is_not_built(tmp_path: Path) -> None:
    file = tmp_path / "schedulers.yaml"
    file.write_text("mine: {about: mine, command: [python3, ./mine.py, x], clock: preload, scheduler-name: mine}\n")
    catalogue = read_catalogue([file])

    assert program_start("mine", catalogue).command == ("python3", str(tmp_path / "mine.py"), "x")
    with pytest.raises(InputError, match="there is nothing to build"):
        find_recipe("mine", catalogue)
    with pytest.raises(InputError, match="is started by a command, which has no versions"):
        program_start("mine@1.0.0", catalogue)
