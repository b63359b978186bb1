"""Builds: by name or from a folder, cached, and done once."""

from __future__ import annotations

import json
import subprocess
import threading
import zipfile
from pathlib import Path

import msgspec
import pytest

from batkube.kernel.errors import InputError, RunFailed
from batkube.schedulers.build.builder import build_path, ensure_built
from batkube.schedulers.build.cache import outdated_builds
from batkube.schedulers.build.records import DEFINITIONS, cached_builds, lock_of, remove_build
from batkube.schedulers.build.toolchains import file_lock
from batkube.schedulers.catalogue import Catalogue, read_catalogue
from batkube.schedulers.definitions import decode_definitions
from batkube.schedulers.named_programs import default_catalogue, find_recipe
from batkube.schedulers.recipes import BuildRecipe, GoMod, go_mod, local_recipe
from schedulers.conftest import needs_go


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A user's module that contains a trivial scheduler."""
    folder = tmp_path / "module"
    (folder / "cmd" / "mine").mkdir(parents=True)
    (folder / "go.mod").write_text("module example.com/mine\n\ngo 1.24\n")
    (folder / "cmd" / "mine" / "main.go").write_text('package main\n\nfunc main() { println("mine") }\n')
    return folder


@needs_go
def test_a_folder_is_rebuilt_when_it_has_changed(module: Path, tmp_path: Path) -> None:
    recipe = local_recipe(module, "./cmd/mine")
    first = ensure_built(recipe, tmp_path / "cache").read_bytes()
    (module / "cmd" / "mine" / "main.go").write_text('package main\n\nfunc main() { println("changed") }\n')

    binary = ensure_built(recipe, tmp_path / "cache")

    assert binary.name == "mine"
    assert binary.read_bytes() != first
    assert build_path(recipe, tmp_path / "cache") == binary


@needs_go
def test_a_concurrent_build_waits_for_the_first(module: Path, tmp_path: Path) -> None:
    recipe = local_recipe(module, "./cmd/mine")
    binary = build_path(recipe, tmp_path)
    reports: list[str] = []
    has_reported = threading.Event()

    def report(text: str) -> None:
        reports.append(text)
        has_reported.set()

    second = threading.Thread(target=ensure_built, args=(recipe, tmp_path, report))
    with file_lock(lock_of(binary.parent), lambda: None):
        second.start()
        assert has_reported.wait(30)
        assert reports == ["waiting for another build of mine"]
        assert not binary.exists()
    second.join()

    assert reports[-1] == "built mine"
    assert sorted(path.name for path in binary.parent.iterdir()) == [".overlay", "build.json", "mine"]


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a published module that requires an unpublished one, on a module proxy made of files."""
    proxy = tmp_path / "proxy"
    publish(
        proxy,
        "example.com/tiny",
        {
            "go.mod": "module example.com/tiny\n\ngo 1.24\n\nrequire example.com/part v0.0.0\n\n"
            "replace example.com/part => example.com/spare v0.1.0\n",
            "whole/main.go": 'package main\n\nimport "example.com/part"\n\nvar Version string\n\n'
            "func main() { println(part.Text, Version) }\n",
            "crds/teams.yaml": "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\n"
            "metadata: {name: teams.example.org}\n",
            "alone/alone.go": 'package alone\n\nconst Text = "alone"\n',
        },
    )
    spare = {"go.mod": "module example.com/part\n\ngo 1.24\n", "part.go": 'package part\n\nconst Text = "part"\n'}
    publish(proxy, "example.com/spare", spare)
    settings = {"GOPROXY": f"file://{proxy}", "GONOSUMDB": "*", "GOFLAGS": "-modcacherw"}
    for variable, value in {**settings, "GOMODCACHE": str(tmp_path / "modules")}.items():
        monkeypatch.setenv(variable, value)
    return "example.com/tiny"


def publish(proxy: Path, name: str, files: dict[str, str]) -> None:
    """Write the responses of a module proxy (go.dev/ref/mod, "GOPROXY protocol")."""
    folder = proxy / name / "@v"
    folder.mkdir(parents=True)
    (folder / "v0.1.0.info").write_text('{"Version": "v0.1.0"}')
    (folder / "v0.1.0.mod").write_text(files["go.mod"])
    with zipfile.ZipFile(folder / "v0.1.0.zip", "w") as archive:
        for path, text in files.items():
            archive.writestr(f"{name}@v0.1.0/{path}", text)


@needs_go
def test_a_module_that_replaces_another_is_built_in_a_copy(published: str, tmp_path: Path) -> None:
    recipe = BuildRecipe(
        "tiny", published, "v0.1.0", "./whole", go_mod=GoMod.COPY, variables=(("main.Version", "0.1.0"),)
    )

    binary = ensure_built(recipe, tmp_path / "cache")

    assert subprocess.run([binary], capture_output=True, text=True, check=True).stderr == "part 0.1.0\n"


@needs_go
@pytest.mark.parametrize(("module", "version"), [("example.com/tiny", "v9.9.9"), ("example.com/none", "v0.1.0")])
def test_a_version_that_does_not_exist_is_an_input_error(
    published: str, tmp_path: Path, module: str, version: str
) -> None:
    with pytest.raises(InputError) as raised:
        ensure_built(BuildRecipe("tiny", module, version, "./whole", go_mod=GoMod.COPY), tmp_path / "cache")

    assert f"{module} has no version {version} that can be downloaded" in str(raised.value)
    assert "run `batkube schedulers list` for the known versions of tiny" in str(raised.value)
    assert not [path for path in (tmp_path / "cache" / "programs").iterdir() if path.is_dir()], (
        "the build folder is removed"
    )
    assert published == "example.com/tiny"


@needs_go
def test_a_proxy_that_cannot_be_reached_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))

    with pytest.raises(RunFailed, match="connection refused"):
        ensure_built(BuildRecipe("tiny", "example.com/tiny", "v0.1.0", "./whole"), tmp_path / "cache")


@needs_go
def test_definitions_are_stored_and_removed_with_their_program(tmp_path: Path, published: str) -> None:
    recipe = BuildRecipe("tiny", published, "v0.1.0", "./whole", go_mod=GoMod.COPY, definitions=("crds",))

    binary = ensure_built(recipe, tmp_path / "cache")

    definitions = decode_definitions((binary.parent / DEFINITIONS).read_bytes())
    assert [definition["metadata"]["name"] for definition in definitions] == ["teams.example.org"]
    assert build_path(recipe, tmp_path / "cache") != build_path(
        msgspec.structs.replace(recipe, definitions=()), tmp_path / "cache"
    )
    [build] = cached_builds(tmp_path / "cache")
    assert remove_build(build) == ""
    assert not binary.parent.exists()


@needs_go
def test_a_main_package_of_the_catalogue_is_built_once(published: str, tmp_path: Path) -> None:
    main = f'package main\n\nimport "{published}/alone"\n\nfunc main() {{ println(alone.Text) }}\n'
    recipe = BuildRecipe("tiny", published, "v0.1.0", "", main=main, missing_modules=("example.com/part",))
    reports: list[str] = []

    binary = ensure_built(recipe, tmp_path / "cache")
    assert ensure_built(recipe, tmp_path / "cache", reports.append) == binary

    assert reports == []
    assert subprocess.run([binary], capture_output=True, text=True, check=True).stderr == "alone\n"


@needs_go
def test_a_build_is_outdated_after_a_change_of_recipe_entry_or_go(published: str, tmp_path: Path) -> None:
    def catalogue(**more: str) -> Catalogue:
        entry = {
            "about": "tiny",
            "module": published,
            "package": "./whole",
            "default": "0.1.0",
            "go-mod": "copy",
            **more,
        }
        (tmp_path / "catalogue.yaml").write_text(json.dumps({"tiny": entry}))
        return read_catalogue([tmp_path / "catalogue.yaml"])

    cache, today = tmp_path / "cache", catalogue()
    for virtual in (True, False):
        ensure_built(msgspec.structs.replace(find_recipe("tiny", today), virtual=virtual), cache)
    builds = cached_builds(cache)

    assert sorted(definitions.record.go != "" for definitions in builds if definitions.record) == [False, True]
    assert outdated_builds(builds, today, cache) == []
    assert outdated_builds(builds, catalogue(package="./alone"), cache) == builds
    assert outdated_builds(builds, default_catalogue(), cache) == builds
    on_real_time = [definitions for definitions in builds if definitions.record and not definitions.record.go]
    unknown_go = [
        msgspec.structs.replace(definitions, record=msgspec.structs.replace(definitions.record, go="go1.24.0"))
        for definitions in builds
        if definitions.record and definitions not in on_real_time
    ]
    assert outdated_builds([*on_real_time, *unknown_go], today, cache) == unknown_go


@needs_go
def test_progress_is_reported_step_by_step(module: Path, tmp_path: Path) -> None:
    reports: list[str] = []

    ensure_built(local_recipe(module, "./cmd/mine"), tmp_path, reports.append)

    assert reports[0] == "building mine"
    assert reports[1] == "downloading modules"
    assert reports[-1] == "built mine"


@needs_go
def test_a_compile_error_in_a_folder_is_an_input_error_with_the_compilers_output(module: Path, tmp_path: Path) -> None:
    (module / "cmd" / "mine" / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")

    with pytest.raises(InputError) as raised:
        ensure_built(local_recipe(module, "./cmd/mine"), tmp_path)

    assert str(raised.value) == (
        f"{module}: ./cmd/mine: does not compile:\n"
        "# example.com/mine/cmd/mine\n"
        "cmd/mine/main.go:3:15: undefined: undefined"
    )


@needs_go
def test_a_published_program_that_does_not_compile_is_a_failure(published: str, tmp_path: Path) -> None:
    recipe = BuildRecipe("tiny", published, "v0.1.0", "", main="package main\n\nfunc main() { undefined() }\n")

    with pytest.raises(RunFailed, match=r"(?s)`.*go build` failed:\n# batkube/build\n.*undefined: undefined"):
        ensure_built(recipe, tmp_path / "cache")


@needs_go
@pytest.mark.parametrize(
    ("package", "problem"),
    [
        ("./part", "the package is not a program: its name is not `main`"),
        (".", r"Go cannot load the package:\n.*no Go files"),
        ("./nowhere", r"Go cannot load the package:\n.*"),
    ],
)
def test_a_package_that_is_not_a_program_is_rejected_with_a_list_of_programs(
    module: Path, tmp_path: Path, package: str, problem: str
) -> None:
    (module / "part").mkdir()
    (module / "part" / "part.go").write_text("package part\n")

    with pytest.raises(InputError, match=f"(?s){problem}.*use --package with one of the module's programs: ./cmd/mine"):
        ensure_built(local_recipe(module, package), tmp_path)


@needs_go
def test_a_folder_of_a_workspace_is_built_with_its_neighbours(module: Path, tmp_path: Path) -> None:
    neighbour = tmp_path / "neighbour"
    neighbour.mkdir()
    (neighbour / "go.mod").write_text("module example.com/neighbour\n\ngo 1.24\n")
    (neighbour / "text.go").write_text('package neighbour\n\nconst Text = "from the neighbour"\n')
    (tmp_path / "go.work").write_text("go 1.24\n\nuse (\n\t./module\n\t./neighbour\n)\n")
    (module / "cmd" / "mine" / "main.go").write_text(
        'package main\n\nimport "example.com/neighbour"\n\nfunc main() { println(neighbour.Text) }\n'
    )

    binary = ensure_built(local_recipe(module, "cmd/mine"), tmp_path / "cache")

    assert subprocess.run([binary], capture_output=True, text=True, check=True).stderr == "from the neighbour\n"


@needs_go
def test_a_program_may_have_the_name_of_a_build_file(module: Path, tmp_path: Path) -> None:
    for name in ("overlay", "source", "lock"):
        (module / "cmd" / "mine").rename(module / "cmd" / name)

        assert ensure_built(local_recipe(module, f"./cmd/{name}"), tmp_path).is_file()
        (module / "cmd" / name).rename(module / "cmd" / "mine")


@pytest.mark.parametrize(
    ("line", "version"), [("go 1.25.3", "1.25.3"), ("go 1.26", "1.26"), ("go 1.27rc1", "1.27rc1"), ("", "")]
)
def test_the_go_version_of_a_folder_is_read_from_its_go_mod(module: Path, line: str, version: str) -> None:
    (module / "go.mod").write_text(f"module example.com/mine\n\n{line}\n")

    assert local_recipe(module, "./cmd/mine").go == version


@pytest.mark.parametrize("package", ["./cmd/mine", "cmd/mine", "./cmd/mine/"])
def test_a_package_is_resolved_in_the_folder(module: Path, package: str) -> None:
    recipe = local_recipe(module, package)

    assert (recipe.name, recipe.package) == ("mine", "./cmd/mine")


def test_kubernetes_is_built_with_libraries_of_the_matching_version() -> None:
    module_go_mod = (
        "module k8s.io/kubernetes\n\nrequire (\n\tk8s.io/api v0.0.0\n)\n\n"
        "replace k8s.io/api => ./staging/src/k8s.io/api\n"
        "replace (\n\tvbom.ml/util => vbom.ml/util v0.0.0-2016\n\tk8s.io/klog => k8s.io/klog v1.0.0\n)\n"
    )
    recipe = BuildRecipe(
        "kube-scheduler",
        "k8s.io/kubernetes",
        "v1.19.0",
        "k8s.io/kubernetes/cmd/kube-scheduler",
        go_mod=GoMod.KUBERNETES,
        missing_modules=("vbom.ml/util",),
    )

    assert go_mod(recipe, module_go_mod) == (
        "module batkube/build\n\nrequire (\n\tk8s.io/kubernetes v1.19.0\n\tk8s.io/api v0.0.0\n)\n\n"
        "replace k8s.io/api => k8s.io/api v0.19.0\n"
        "replace (\n\tk8s.io/klog => k8s.io/klog v1.0.0\n)\n"
        "\nreplace vbom.ml/util => ./missing/vbom.ml_util\n"
    )


def test_a_library_in_a_folder_of_the_repository_is_replaced_by_a_published_one() -> None:
    module_go_mod = (
        "module volcano.sh/volcano\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.34.1\n"
        "\tvolcano.sh/apis => ./staging/src/apis\n)\n"
    )
    recipe = BuildRecipe(
        "volcano",
        "volcano.sh/volcano",
        "v1.14.1",
        "volcano.sh/volcano/cmd/scheduler",
        go_mod=GoMod.COPY,
        replaced_modules=(("volcano.sh/apis", "v1.14.0"),),
    )

    assert go_mod(recipe, module_go_mod) == (
        "module volcano.sh/volcano\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.34.1\n)\n"
        "\nreplace volcano.sh/apis => volcano.sh/apis v1.14.0\n"
    )
