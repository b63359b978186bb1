"""Platforms from openb node lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from batkube.kernel.errors import InputError
from batkube.kernel.quantities import CPU, GPU, MEMORY, PODS
from batkube.platforms.model import DEFAULT_PODS
from batkube.platforms.reader import read_platform

HEAD = "sn,cpu_milli,memory_mib,gpu,model\n"


def test_nodes_have_cpu_memory_gpus_and_the_model_as_a_label(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(HEAD + "n-0,32000,262144,0,\nn-1,96000,524288,8,V100M32\n")

    plain, gpus = read_platform(str(path)).machines

    assert plain.capacity == {CPU: 32_000, MEMORY: 256 * 1024**3, PODS: DEFAULT_PODS}
    assert plain.labels == {}
    assert gpus.capacity == {CPU: 96_000, MEMORY: 512 * 1024**3, GPU: 8, PODS: DEFAULT_PODS}
    assert gpus.labels == {"alibabacloud.com/gpu-card-model": "V100M32"}


@pytest.mark.parametrize(
    ("text", "at", "problem"),
    [
        ("", "line 1", "no column"),
        ("name,cpu\na,1\n", "line 1", "no column sn"),
        (HEAD, None, "no machine"),
        (HEAD + "a,x,1,0,\n", "line 2, cpu_milli", "not a quantity"),
        (HEAD + "a,1,1,-1,\n", "line 2, gpu", "negative"),
        (HEAD + "a,1,1\n", "line 2", "differs from that of columns"),
        (HEAD + "a,1,1,0,,7\n", "line 2", "differs from that of columns"),
        (HEAD + ",1,1,0,\n", "line 2", "the name is empty"),
        (HEAD + "a,1,1,0,\na,1,1,0,\n", "'a'", "two machines"),
    ],
)
def test_errors_name_the_line_of_the_node_list(tmp_path: Path, text: str, at: str | None, problem: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(text)

    with pytest.raises(InputError, match=problem) as error:
        read_platform(str(path))

    assert at is None or at in (error.value.at or "")


def test_the_openb_cluster_has_the_nodes_and_gpus_of_the_trace(shared_data: Path) -> None:
    platform = read_platform(str(shared_data / "openb/openb_node_list_all_node.csv"))

    assert len(platform.machines) == 1523
    assert sum(machine.capacity.get(GPU, 0) for machine in platform.machines) == 6212
    assert platform.machines[0].name == "openb-node-0000"
