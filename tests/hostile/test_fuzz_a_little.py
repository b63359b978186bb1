"""A short run of the fuzzer, so that it keeps working."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def fuzzer() -> ModuleType:
    """The fuzzer, imported as a module."""
    spec = importlib.util.spec_from_file_location("hostile_fuzz", Path(__file__).with_name("fuzz.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hostile_fuzz"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [1, 2])
def test_a_few_hundred_inputs_of_every_kind_have_no_findings(fuzzer: ModuleType, seed: int) -> None:
    assert fuzzer.fuzz(seed, 400) == []
