"""Run an SWF file through AccaSim; executed by the Python of AccaSim's virtualenv, so it imports nothing of ours.

accasim_runner.py WORKLOAD.swf NODES fcfs|easy OUTPUT_FOLDER
"""

from __future__ import annotations

import collections
import collections.abc
import json
import sys
from pathlib import Path


def main() -> None:
    """Simulate nodes of one core each, with AccaSim's default outputs."""
    workload, nodes, policy, folder = sys.argv[1:]
    # AccaSim 1.1.3 imports this name, which Python removed in 3.10.
    collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut
    from accasim.base.simulator_class import Simulator

    system = {
        "system_name": "benchmark",
        "start_time": 0,
        "equivalence": {"processor": {"core": 1}},
        "groups": {"g0": {"core": 1}},
        "resources": {"g0": int(nodes)},
    }
    system_file = Path(folder) / "system.json"
    system_file.write_text(json.dumps(system))
    scheduler = {"fcfs": FirstInFirstOut, "easy": EASYBackfilling}[policy]
    Simulator(
        workload, str(system_file), scheduler(FirstFit()), RESULTS_FOLDER_PATH=folder, show_statistics=False
    ).start_simulation()


if __name__ == "__main__":
    main()
