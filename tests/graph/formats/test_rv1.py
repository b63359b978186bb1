"""Invalid R files are rejected with the place of the error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batkube.graph import read_graph
from batkube.kernel.errors import InputError


def test_a_host_with_a_number_beyond_int64_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    execution = {"R_lite": [{"rank": "0", "children": {"core": "0-1"}}], "nodelist": ["fluke9223372036854775808"]}
    path.write_text(json.dumps({"version": 1, "execution": execution}), encoding="utf-8")

    with pytest.raises(InputError, match="digits") as caught:
        read_graph(path, "rv1exec")

    assert caught.value.at == "execution.nodelist"
