"""Start-up of external programs: catalogue entries combined with the user's options."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from batkube.cluster.kinds import DEFAULT_KUBERNETES
from batkube.kernel.errors import InputError
from batkube.programs.program import ExternalProgram
from batkube.programs.selection.external_programs import external_programs, program_configuration
from batkube.programs.startup.command_lines import (
    ProgramFolder,
    command_line,
    required_api_versions,
    required_kubernetes,
    served_scheduler_names,
)
from batkube.programs.startup.extenders import ExtenderProxy
from batkube.scenarios.scenario import Scenario
from batkube.schedulers.named_programs import ProgramStart, program_start

V1 = "kubescheduler.config.k8s.io/v1"


def _scheduler(
    title: str = "kube-scheduler",
    *,
    start: ProgramStart | None = None,
    file: Path | None = None,
    serves: str = "",
    arguments: tuple[str, ...] = (),
) -> ExternalProgram:
    start = start or program_start(title)
    content = program_configuration(title, start, file, serves)
    return ExternalProgram(title, Path("/programs/it"), start, arguments, content, serves)


def _file(folder: Path, text: str) -> Path:
    path = folder / "user.yaml"
    path.write_text(f"apiVersion: {V1}\nkind: KubeSchedulerConfiguration\n{text}")
    return path


def _start(scheduler: ExternalProgram, folder: Path) -> tuple[list[str], dict[str, Any]]:
    """Return the command line and the content of the configuration file."""
    command = command_line(scheduler, ProgramFolder(folder, str(folder)), 4711, "secret", ExtenderProxy([], 1))
    file = folder / "configuration.yaml"
    return command, yaml.safe_load(file.read_text()) if file.exists() else {}


def test_the_token_is_only_in_a_private_file_and_not_in_arguments(tmp_path: Path) -> None:
    previous_umask = os.umask(0)
    try:
        command, _ = _start(_scheduler(), tmp_path)
    finally:
        os.umask(previous_umask)

    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert not any("secret" in argument for argument in command)


def test_kube_scheduler_is_started_with_the_runs_kubeconfig_and_without_leader_election(tmp_path: Path) -> None:
    command, content = _start(_scheduler(arguments=("--feature-gates=X=true",)), tmp_path)

    assert command == [
        "/programs/it",
        f"--config={tmp_path}/configuration.yaml",
        "--secure-port=0",
        "--v=2",
        "--feature-gates=X=true",
    ]
    assert content == {
        "apiVersion": V1,
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": f"{tmp_path}/kubeconfig"},
        "leaderElection": {"leaderElect": False},
    }
    assert "http://127.0.0.1:4711/secret" in (tmp_path / "kubeconfig").read_text()
    assert (tmp_path / "kubeconfig").stat().st_mode & 0o777 == 0o600


def test_a_users_argument_replaces_the_default(tmp_path: Path) -> None:
    """If a flag occurs twice, most Go programs use the last value, but lists of controllers are merged."""
    command, _ = _start(_scheduler(arguments=("--v=4", "--secure-port=10259")), tmp_path)

    assert command[1:] == [f"--config={tmp_path}/configuration.yaml", "--v=4", "--secure-port=10259"]


def test_an_old_version_gets_its_own_configuration_and_api_versions(tmp_path: Path) -> None:
    scheduler = _scheduler("kube-scheduler@1.19.0")
    _, content = _start(scheduler, tmp_path)

    assert content["apiVersion"] == "kubescheduler.config.k8s.io/v1beta1"
    assert content["healthzBindAddress"] == content["metricsBindAddress"] == "127.0.0.2:4711"
    assert required_api_versions([_scheduler(), scheduler, scheduler]) == ["policy/v1beta1"]
    assert required_api_versions([_scheduler()]) == []


def test_a_program_chooses_the_version_of_kubernetes_that_it_needs() -> None:
    gangs, any_version = _scheduler("kube-scheduler-gangs@1.37.1"), _scheduler()

    assert required_kubernetes([any_version, gangs], None) == required_kubernetes([gangs], "1.37") == "1.37"
    assert required_kubernetes([_scheduler("kube-scheduler@1.37.1")], None) == "1.37"
    assert (required_kubernetes([any_version], None), required_kubernetes([], "1.36")) == (DEFAULT_KUBERNETES, "1.36")
    with pytest.raises(InputError, match=r"kube-scheduler-gangs@1\.37\.1 needs the API of Kubernetes 1\.37"):
        required_kubernetes([gangs], "1.34")


def test_the_users_configuration_is_passed_on_except_for_the_kubeconfig(tmp_path: Path) -> None:
    config = _file(
        tmp_path,
        "clientConnection: {qps: 200, kubeconfig: /etc/kubernetes/scheduler.conf}\n"
        "podMaxBackoffSeconds: 3\n"
        "profiles: [{schedulerName: a}, {schedulerName: b, pluginConfig: [{name: X, args: {weight: 7}}]}]\n"
        "extenders: [{urlPrefix: 'http://127.0.0.1:1', filterVerb: filter}]\n",
    )
    scheduler = _scheduler(file=config)
    _, content = _start(scheduler, tmp_path)

    assert content.pop("leaderElection") == {"leaderElect": False}
    expected = yaml.safe_load(config.read_text())
    expected["clientConnection"]["kubeconfig"] = f"{tmp_path}/kubeconfig"
    assert content == expected
    assert served_scheduler_names(scheduler) == ["a", "b"]


def test_leader_election_can_be_enabled(tmp_path: Path) -> None:
    config = _file(tmp_path, "leaderElection: {leaderElect: true, leaseDuration: 30s}\n")
    _, content = _start(_scheduler(file=config), tmp_path)

    assert content["leaderElection"] == {"leaderElect": True, "leaseDuration": "30s"}


def test_an_empty_section_means_its_default(tmp_path: Path) -> None:
    _, content = _start(_scheduler(file=_file(tmp_path, "clientConnection:\n")), tmp_path)

    assert content["clientConnection"] == {"kubeconfig": f"{tmp_path}/kubeconfig"}


_KEYS = st.sampled_from(["a", "b", "clientConnection", "leaderElection", "leaderElect", "profiles"])
_MAPPINGS = st.recursive(
    st.dictionaries(_KEYS, st.one_of(st.integers(), st.text(alphabet="xyz"), st.lists(st.integers())), max_size=4),
    lambda inner: st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=6,
)


@settings(max_examples=40)
@given(_MAPPINGS)
def test_no_setting_of_the_user_is_lost(tmp_path_factory: pytest.TempPathFactory, user_content: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("given") / "user.yaml"
    user_content = {**user_content, "kind": "KubeSchedulerConfiguration"}
    path.write_text(yaml.safe_dump(user_content))

    def missing(user_content: Any, content: Any) -> bool:  # noqa: ANN401
        if isinstance(user_content, dict):
            return any(missing(value, content.get(key, ...)) for key, value in user_content.items())
        return bool(user_content != content)

    assert not missing(user_content, _scheduler(file=path).configuration)


def test_a_scheduler_with_a_name_of_its_own_has_a_profile_of_that_name(tmp_path: Path) -> None:
    scheduler = _scheduler(serves="second")
    _, content = _start(scheduler, tmp_path)

    assert content["profiles"] == [{"schedulerName": "second"}]
    assert served_scheduler_names(scheduler) == ["second"]
    assert served_scheduler_names(_scheduler()) == ["default-scheduler"]


def test_a_program_without_a_configuration_file_is_configured_by_arguments(tmp_path: Path) -> None:
    start = ProgramStart(("--kubeconfig={kubeconfig}", "--name={scheduler-name}", "--conf={configuration}"), {}, "mine")

    command, content = _start(_scheduler(start=start), tmp_path)
    second, _ = _start(_scheduler(start=start, serves="second"), tmp_path)

    assert command[1:] == [f"--kubeconfig={tmp_path}/kubeconfig", "--name=mine"]
    assert content == {}
    assert second[2] == "--name=second"


def test_a_users_file_is_passed_to_a_program_without_a_default_one(tmp_path: Path) -> None:
    config = tmp_path / "user.yaml"
    config.write_text("actions: allocate, backfill\n")
    start = ProgramStart(("--conf={configuration}",), {}, "mine")

    command, content = _start(_scheduler(start=start, file=config), tmp_path)

    assert command[1:] == [f"--conf={tmp_path}/configuration.yaml"]
    assert content == {"actions": "allocate, backfill"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Pod\n", "is not a KubeSchedulerConfiguration"),
        ("- 1\n", "is not a KubeSchedulerConfiguration"),
        ("kind: KubeSchedulerConfiguration\n~: 1\n", "keys"),
        ("{", "is not YAML"),
    ],
)
def test_a_wrong_file_is_rejected_before_anything_starts(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "user.yaml"
    path.write_text(text)

    with pytest.raises(InputError, match=problem):
        _scheduler(file=path)


def test_a_configuration_for_a_program_that_takes_none_is_rejected(tmp_path: Path) -> None:
    start = ProgramStart(("--kubeconfig={kubeconfig}",), {}, "mine")

    with pytest.raises(InputError, match="takes no configuration file"):
        _scheduler(start=start, file=_file(tmp_path, ""))


def _last_scheduler(*texts: str, **options: Any) -> ExternalProgram:  # noqa: ANN401
    """Return the last scheduler of a scenario."""
    main, *more = texts
    scenario = Scenario((Path("w.json"),), "1x1", main, more_schedulers=tuple(more), **options)
    return external_programs(scenario, lambda title, _: Path("/built") / title)[-1]


def test_a_name_is_built_and_a_path_is_used_as_it_is(tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.touch()

    by_name, by_path = _last_scheduler("kube-scheduler@1.19.0"), _last_scheduler(str(program))

    assert (by_name.binary, by_name.start) == (
        Path("/built/kube-scheduler@1.19.0"),
        program_start("kube-scheduler@1.19.0"),
    )
    assert by_path.binary == program
    assert by_path.start == msgspec.structs.replace(program_start("kube-scheduler"), is_built_in=False)


def test_arguments_and_configuration_options_apply_to_the_main_scheduler(tmp_path: Path) -> None:
    options = {"scheduler_args": {"v": "4"}, "scheduler_config": _file(tmp_path, "podMaxBackoffSeconds: 3\n")}

    main, second = (
        _last_scheduler("kube-scheduler", **options),
        _last_scheduler("kube-scheduler", "second=kube-scheduler", **options),
    )

    assert (main.arguments, main.configuration["podMaxBackoffSeconds"]) == (("--v=4",), 3)
    assert (second.arguments, second.serves, second.folder) == ((), "second", "second")
    assert "podMaxBackoffSeconds" not in second.configuration


def test_every_scheduler_may_have_arguments_and_a_configuration_file(tmp_path: Path) -> None:
    config = _file(tmp_path, "profiles: [{schedulerName: third}]\n")

    second = _last_scheduler(
        "kube-scheduler", f"second=kube-scheduler@1.29.6 --feature-gates=A=true,B=false '--config={config}'"
    )

    assert (second.name, second.serves, second.folder) == ("kube-scheduler@1.29.6", "second", "second")
    assert second.arguments == ("--feature-gates=A=true,B=false",)
    assert served_scheduler_names(second) == ["third"]


def test_a_path_with_a_space_is_one_program(tmp_path: Path) -> None:
    program = tmp_path / "my scheduler"
    program.touch()

    assert _last_scheduler(str(program)).binary == program
    assert _last_scheduler(f"'{program}' --v=4").arguments == ("--v=4",)


def _attached(*texts: str) -> tuple[ExternalProgram, ...]:
    scenario = Scenario((Path("w.json"),), "1x1", "kube-scheduler", attach=texts)
    return external_programs(scenario, lambda title, _: Path("/built") / title)[1:]


def test_an_attached_program_has_its_own_arguments_and_serves_no_pods(tmp_path: Path) -> None:
    program = tmp_path / "descheduler"
    program.touch()
    manager, plain, with_placeholder = _attached(
        "kube-controller-manager@1.34.4 --v=4 '--name=a b'",
        f"{program} --dry-run",
        f"{program} --client={{kubeconfig}}",
    )
    assert manager.binary == Path("/built/kube-controller-manager@1.34.4")
    assert _start(manager, tmp_path)[0][-2:] == ["--v=4", "--name=a b"]
    assert f"--kubeconfig={tmp_path}/kubeconfig" in _start(manager, tmp_path)[0]
    assert _start(plain, tmp_path)[0] == [str(program), f"--kubeconfig={tmp_path}/kubeconfig", "--dry-run"]
    assert _start(with_placeholder, tmp_path)[0] == [str(program), f"--client={tmp_path}/kubeconfig"]
    assert [served_scheduler_names(attached) for attached in (manager, plain, with_placeholder)] == [[], [], []]
    assert [attached.folder for attached in (manager, plain, with_placeholder)] == [
        "attached-1-kube-controller-manager",
        "attached-2-descheduler",
        "attached-3-descheduler",
    ]


def test_the_real_controllers_are_started_by_name_or_path(tmp_path: Path) -> None:
    program = tmp_path / "kube-controller-manager"
    program.touch()
    for text, binary in (
        ("kube-controller-manager@1.34.4", "/built/kube-controller-manager@1.34.4"),
        (str(program),) * 2,
    ):
        scenario = Scenario(
            (Path("w.yaml"),), "1x1", "kube-scheduler", controllers=f"{text} --v=4", attach=("kubectl",)
        )
        with pytest.raises(InputError, match="does not support virtual time"):
            external_programs(scenario, lambda title, _: Path("/built") / title)
        manager = external_programs(replace(scenario, attach=()), lambda title, _: Path("/built") / title)[1]
        command, _ = _start(manager, tmp_path)
        assert (command[0], command[-1], manager.folder) == (binary, "--v=4", "kube-controller-manager")
        assert {f"--kubeconfig={tmp_path}/kubeconfig", "--leader-elect=false"} < set(command)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("./nowhere --x", "there is no such program"),
        ("slurm", "is not a program of the catalogue"),
        ("a 'b", "not a valid command line"),
        (" ", "has no name"),
    ],
)
def test_an_invalid_attached_program_is_an_input_error(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        _attached(text)


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("easy", "is a policy, not a program", "write policy:easy"),
        ("./mine.py:Mine", "is a policy, not a program", "write policy:./mine.py:Mine"),
        ("slurm", "is not a program of the catalogue", "known: kube-scheduler"),
        ("kubescheduler", "is not a program of the catalogue", "did you mean 'kube-scheduler'?"),
        ("./nowhere", "there is no such program", "check the path"),
        ("kube-scheduler@newest", "is not a version of kube-scheduler", "write kube-scheduler@"),
        ("kubectl", "does not support virtual time", "batkube schedulers list"),
        ("kube-controller-manager", "is not a scheduler", "--attach kube-controller-manager"),
    ],
)
def test_an_invalid_scheduler_is_rejected_with_a_remedy(text: str, problem: str, remedy: str) -> None:
    with pytest.raises(InputError) as raised:
        _last_scheduler(text)
    assert problem in str(raised.value)
    assert remedy in str(raised.value)
