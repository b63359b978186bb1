"""Parquet files, without pandas and without the thread pools of Arrow."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import itertools
from array import array
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow

Column = Sequence[str | float | None]
"""A column of texts or of numbers; None where there is no value."""


@functools.cache
def preload_parquet() -> bool:
    """Import pyarrow, ideally while runs are executing; return whether it is installed."""
    if importlib.util.find_spec("pyarrow") is None:
        return False
    importlib.import_module("pyarrow.parquet")
    return True


def write_parquet_file(path: Path, columns: Mapping[str, Column], float_columns: Collection[str] = ()) -> None:
    """Write a table; pyarrow must be installed. The same columns give the same bytes.

    The columns named in `float_columns` become float columns, even if all their numbers are whole or missing.
    """
    import pyarrow
    import pyarrow.parquet

    arrays = [arrow_array(values, are_floats=name in float_columns) for name, values in columns.items()]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, names=[*columns]), path)


def arrow_array(values: Column, *, are_floats: bool = False) -> pyarrow.Array:
    """Return a column as an Arrow array: of texts if it has any, of int64 if all numbers are whole, else of floats.

    It is made from buffers. `pyarrow.array` imports pandas, which takes longer than everything else here, and readers
    such as `pyarrow.csv` start threads that sometimes abort the process at its end (apache/arrow issue 34314).
    """
    import numpy as np
    import pyarrow

    is_present = np.array([value is not None for value in values], dtype=bool)
    validity = pyarrow.py_buffer(np.packbits(is_present, bitorder="little"))
    if any(isinstance(value, str) for value in values):
        texts = [b"" if value is None else str(value).encode() for value in values]
        offsets = array("q", itertools.accumulate(map(len, texts), initial=0))
        # Most readers prefer short offsets, which end at 2 GiB.
        kind, code = (pyarrow.string(), "i") if offsets[-1] < 1 << 31 else (pyarrow.large_string(), "q")
        buffers = [validity, pyarrow.py_buffer(array(code, offsets)), pyarrow.py_buffer(b"".join(texts))]
        return pyarrow.Array.from_buffers(kind, len(texts), buffers)
    numbers = [value for value in values if not isinstance(value, str)]
    present = [number for number in numbers if number is not None]
    are_integers = not are_floats and all(
        isinstance(number, int) and -(1 << 63) <= number < 1 << 63 for number in present
    )
    data = np.array([number or 0 for number in numbers], dtype=np.int64 if are_integers else np.float64)
    kind = pyarrow.int64() if are_integers else pyarrow.float64()
    return pyarrow.Array.from_buffers(kind, len(numbers), [validity, pyarrow.py_buffer(data)])
