"""`batkube graph`: commands in, matches out; drawings; and one message for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.graph.conftest import jgf
from typer.testing import CliRunner

from batkube.cli.app import build_app
from batkube.graph import read_graph
from batkube.kernel.errors import InputError

MATCH = """\
      ---------core0[1:x]
      ---------core1[1:x]
      ------node0[1:s]
      ---cluster0[1:s]
INFO: =============================
INFO: JOBID=1
INFO: RESOURCES=ALLOCATED
INFO: SCHEDULED AT=Now
INFO: =============================
"""
RESERVED = "INFO: RESOURCES=RESERVED\nINFO: SCHEDULED AT=600\n"


def query(graph: Path, commands: str, *options: str) -> str:
    words = ["graph", "query", "-L", str(graph), "-f", "jgf", "-P", "low", *options]
    result = CliRunner().invoke(build_app("graph"), words, input=commands)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_match_is_printed_as_resource_query_does(graph_file: Path, jobspec_file: Path) -> None:
    assert query(graph_file, f"match allocate {jobspec_file}\nquit\n") == MATCH


def test_the_fifth_of_four_places_is_reserved_and_a_cancelled_one_is_free_again(
    graph_file: Path, jobspec_file: Path
) -> None:
    line = f"match allocate_orelse_reserve {jobspec_file}\n"

    full = query(graph_file, 5 * line)
    again = query(graph_file, 4 * line + "cancel 1\n" + line)

    assert RESERVED in full
    assert RESERVED not in again
    assert again.count("core0[1:x]") == 3


def test_a_graph_is_drawn_with_what_jobs_hold_in_their_colours(
    graph_file: Path, jobspec_file: Path, tmp_path: Path
) -> None:
    script, drawing = tmp_path / "commands", tmp_path / "graph.svg"
    script.write_text(f"match allocate {jobspec_file}\nset-status /cluster0/node1/core3 down\n", encoding="utf-8")
    words = ["-L", str(graph_file), "-f", "jgf", "-P", "low", "--commands", str(script), "-o", str(drawing)]

    assert CliRunner().invoke(build_app("graph"), ["graph", "show", *words]).exit_code == 0

    titles = [title.text or "" for title in ElementTree.parse(drawing).iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 11
    assert sorted(title for title in titles if ":" in title) == [
        "cluster0: shared by job 1",
        "core0: held by job 1",
        "core1: held by job 1",
        "core3: down",
        "node0: shared by job 1",
    ]


def _cycle(graph: dict[str, Any]) -> None:
    graph["graph"]["edges"].append({"source": "2", "target": "1"})


def _negative(graph: dict[str, Any]) -> None:
    graph["graph"]["nodes"][3]["metadata"]["size"] = -1


def _rootless(graph: dict[str, Any]) -> None:
    graph["graph"]["nodes"][0]["metadata"]["paths"] = {"containment": "/a/b"}


def _twice(graph: dict[str, Any]) -> None:
    graph["graph"]["nodes"][3]["id"] = "2"


def _dangling(graph: dict[str, Any]) -> None:
    graph["graph"]["edges"].append({"source": "1", "target": "99"})


def _typeless(graph: dict[str, Any]) -> None:
    del graph["graph"]["nodes"][3]["metadata"]["type"]


def _rank(graph: dict[str, Any]) -> None:
    graph["graph"]["nodes"][3]["metadata"]["rank"] = "many"


@pytest.mark.parametrize("spoil", [_cycle, _negative, _rootless, _twice, _dangling, _typeless, _rank])
def test_bad_graphs_are_refused_with_the_place(spoil: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    graph = jgf()
    spoil(graph)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(graph), encoding="utf-8")

    with pytest.raises(InputError) as caught:
        read_graph(path, "jgf")

    assert caught.value.at, caught.value
    assert str(path) in str(caught.value)


GRUG = """<?xml version="1.0" encoding="UTF-8"?>
{prolog}<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="root" attr.type="int" for="node" id="root"/>
<key attr.name="type" attr.type="string" for="node" id="type"/>
<key attr.name="basename" attr.type="string" for="node" id="basename"/>
<key attr.name="size" attr.type="long" for="node" id="size"><default>1</default></key>
<key attr.name="subsystem" attr.type="string" for="node" id="subsystem"><default>containment</default></key>
<key attr.name="e_subsystem" attr.type="string" for="edge" id="e_subsystem"><default>containment</default></key>
<key attr.name="relation" attr.type="string" for="edge" id="relation"><default>contains</default></key>
<key attr.name="gen_method" attr.type="string" for="edge" id="gen_method"><default>MULTIPLY</default></key>
<key attr.name="multi_scale" attr.type="int" for="edge" id="multi_scale"/>
<graph id="g" edgedefault="directed">
<node id="cluster"><data key="root">1</data><data key="type">cluster</data><data key="basename">c</data></node>
<node id="core"><data key="type">core</data><data key="basename">core</data><data key="size">{size}</data></node>
<edge id="e" source="cluster" target="core"><data key="multi_scale">{scale}</data></edge>
{more}</graph></graphml>
"""


def test_a_recipe_is_carried_out(tmp_path: Path) -> None:
    path = tmp_path / "good.graphml"
    path.write_text(GRUG.format(prolog="", size=1, scale=3, more=""), encoding="utf-8")

    graph = read_graph(path)

    assert graph.name == ["c0", "core0", "core1", "core2"]


@pytest.mark.parametrize(
    "change",
    [
        {"size": "-3"},
        {"scale": "-1"},
        {"scale": "99999999999"},
        {"more": '<edge id="f" source="core" target="cluster"><data key="multi_scale">2</data></edge>'},
        {"more": '<edge id="f" source="core" target="nowhere"><data key="multi_scale">2</data></edge>'},
        {"more": "<node"},
        {"prolog": '<!DOCTYPE x [<!ENTITY a "aaaa">]>'},
    ],
)
def test_bad_recipes_are_refused_with_the_line(change: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "bad.graphml"
    path.write_text(GRUG.format(**{"prolog": "", "size": "1", "scale": "2", "more": "", **change}), encoding="utf-8")

    with pytest.raises(InputError) as caught:
        read_graph(path)

    assert caught.value.at is not None, caught.value
    assert "line" in caught.value.at


def test_an_unknown_type_in_a_jobspec_is_one_message_with_its_place(graph_file: Path, jobspec_file: Path) -> None:
    text = jobspec_file.read_text(encoding="utf-8").replace("type: core", "type: corn")
    jobspec_file.write_text(text, encoding="utf-8")
    words = ["graph", "query", "-L", str(graph_file), "-f", "jgf"]

    result = CliRunner().invoke(build_app("graph"), words, input=f"match allocate {jobspec_file}\n")

    assert result.exit_code == 2
    assert "resources[0].with[0].with[0]: the type 'corn'" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_host_whose_number_no_id_can_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    execution = {"R_lite": [{"rank": "0", "children": {"core": "0-1"}}], "nodelist": ["fluke9223372036854775808"]}
    path.write_text(json.dumps({"version": 1, "execution": execution}), encoding="utf-8")

    with pytest.raises(InputError, match="digits") as caught:
        read_graph(path, "rv1exec")

    assert caught.value.at == "execution.nodelist"
