"""Input files that could crash a reader or exhaust memory are rejected with one message and exit code 2."""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
import tracemalloc
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import pytest

from batkube.cli.main import main
from batkube.files.yaml_reader import read_yaml, yaml_documents
from batkube.kernel.errors import InputError
from batkube.platforms.reader import read_platform
from batkube.workloads.reader import read_workload

BOMB = "\n".join(["a0: &a0 {x: 1}", *(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))])
LAUGHS = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))])


def refused(folder: Path, *arguments: str) -> str:
    """Return the error message of a command that must end with exit code 2."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    command = ["batkube", *arguments, "--out", "out"]
    with contextlib.chdir(folder), redirect_stdout(out), redirect_stderr(err), mock.patch.object(sys, "argv", command):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
    assert code == 2, err.getvalue()
    assert "Traceback" not in err.getvalue()
    return err.getvalue()


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 10_000, "? " * 10_000])
def test_deep_nesting_in_any_yaml_file_causes_one_message(tmp_path: Path, text: str) -> None:
    for name, arguments in (
        ("s.yaml", ["run", "s.yaml"]),
        ("w.yaml", ["run", "--workload", "w.yaml", "--platform", "1x1"]),
        ("p.yaml", ["run", "--workload", "w.swf", "--platform", "p.yaml"]),
        ("e.yaml", ["experiment", "e.yaml"]),
    ):
        (tmp_path / "w.swf").write_text("1 0 0 1 1 -1 -1 1 1 -1 1 1 1 -1 1 -1 -1 -1\n", encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")

        assert "nested more than 100 levels deep" in refused(tmp_path, *arguments)


@pytest.mark.parametrize("text", [BOMB, LAUGHS], ids=["merges", "aliases"])
def test_yaml_aliases_that_multiply_are_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")

    for read in (read_yaml, lambda path: yaml_documents(path, path.read_bytes())):
        with pytest.raises(InputError, match="aliases stand for more than 100,000 values"):
            read(path)


@pytest.mark.parametrize("text", ["a: &a [*a]", "&a {b: *a}"])
def test_a_yaml_document_that_contains_itself_is_rejected(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="the anchor 'a' contains itself"):
        yaml_documents(tmp_path / "a.yaml", text)


@pytest.mark.parametrize(
    "text",
    ["a: !!timestamp x", "a: !!int ''", "a: !!bool x", "a: 2020-13-45", "a: " + "1:" * 200 + "0.5", "a: " + "9" * 5000],
)
def test_yaml_values_that_contradict_their_tag_are_rejected(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="value that cannot be read"):
        yaml_documents(tmp_path / "a.yaml", text)


@pytest.mark.parametrize("name", ["w.json.gz", "w.swf.gz", "w.yaml.gz"])
def test_a_gzip_bomb_is_rejected_while_it_is_unpacked(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with gzip.open(path, "wb") as packed:
        for _ in range(90):
            packed.write(b"0" * (1 << 20))
    assert path.stat().st_size < 200_000

    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"unpacks to more than \d+ MiB"):
            read_workload(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 400 << 20


def test_a_highly_compressed_trace_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "w.swf.gz"
    with gzip.open(path, "wb") as packed:
        for number in range(1, 20_001):
            packed.write(b"%d %d 0 10 1 -1 -1 1 20 -1 1 1 1 -1 1 -1 -1 -1\n" % (number, number))

    assert len(read_workload(path).jobs) == 20_000


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE p [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><platform version="4">&b;</platform>',
        '<platform version="4">' + "<zone>" * 100_000,
        '<platform version="4"><host id="' + "a" * 1_000_000,
    ],
    ids=["entities", "nesting", "unfinished"],
)
def test_xml_bombs_are_rejected(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.xml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError):
        read_platform(str(path))


@pytest.mark.parametrize("text", ['{"a":' * 100_000, "[" * 100_000, '{"jobs": ' + "9" * 100_000 + "}"])
def test_deep_json_and_long_numbers_are_rejected(tmp_path: Path, text: str) -> None:
    for name, read in (("w.json", read_workload), ("p.json", lambda path: read_platform(str(path)))):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")

        with pytest.raises(InputError):
            read(path)


def test_a_header_number_of_thousands_of_digits_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "w.swf"
    path.write_text(f"; MaxProcs: {'9' * 5000}\n1 0 0 1 1 -1 -1 1 1 -1 1 1 1 -1 1 -1 -1 -1\n", encoding="utf-8")

    assert read_workload(path).size_machines is None
