"""GRUG recipes generate graphs; invalid ones are rejected with the line of the error."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.graph import read_graph
from batkube.kernel.errors import InputError

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


def test_a_recipe_generates_its_vertices(tmp_path: Path) -> None:
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
def test_an_invalid_recipe_is_rejected_with_the_line(change: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "bad.graphml"
    path.write_text(GRUG.format(**{"prolog": "", "size": "1", "scale": "2", "more": "", **change}), encoding="utf-8")

    with pytest.raises(InputError) as caught:
        read_graph(path)

    assert caught.value.at is not None, caught.value
    assert "line" in caught.value.at
