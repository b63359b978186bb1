"""Hand-written output folders and recordings, and a folder for an experiment."""

from tests.calibration.conftest import write
from tests.experiments.conftest import study
from tests.outputs.conftest import small
from tests.run_folders import make_run, shared_machines

__all__ = ["make_run", "shared_machines", "small", "study", "write"]
