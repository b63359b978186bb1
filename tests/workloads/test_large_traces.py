"""The memory for a trace of 200,000 jobs, measured in a new process because Python does not return memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path
from batkube.kernel.stopwatch import peak_memory_bytes
from batkube.workloads.transformations.conversions import shift_to_zero
from batkube.workloads.reader import read_workload
from batkube.workloads.writer import write_workload

workload = read_workload(Path(sys.argv[1]))
read_bytes = peak_memory_bytes()
write_workload(shift_to_zero(workload), Path(sys.argv[2]))
assert (len(workload.jobs), workload.size_machines) == (202876, 240)
again = read_workload(Path(sys.argv[2]))
assert again.jobs[-1] == workload.jobs[-1]
print(read_bytes >> 20, peak_memory_bytes() >> 20)
"""


def test_the_hpc2n_trace_is_read_and_converted_in_little_memory(shared_data: Path, tmp_path: Path) -> None:
    trace = shared_data / "swf" / "HPC2N-2002-2.1-cln.swf.gz"

    output = subprocess.run(
        [sys.executable, "-c", SCRIPT, trace, tmp_path / "hpc2n.json"], check=True, capture_output=True, text=True
    ).stdout

    reading_mib, all_mib = map(int, output.split())
    # First for reading alone; then for two workloads, a conversion and the JSON text.
    assert reading_mib < 150
    assert all_mib < 400
