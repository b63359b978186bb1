"""The heat map of machines over time."""

from __future__ import annotations

import numpy as np

from batkube.outputs.measures.occupancy.stays import stays_of
from batkube.outputs.measures.occupancy.step_functions import utilisation_steps
from batkube.outputs.report.heat_map import busy_shares, heat_map_section
from batkube.outputs.results import Results


def test_cells_have_the_share_of_time_with_a_job(small: Results) -> None:
    shares = busy_shares(small)

    assert shares is not None
    at = shares.edges_s[:-1]
    np.testing.assert_allclose(shares.busy[:, at < 99], 1.0)
    # Job 2 is on machines 0, 1 and 3 until 160 s, job 3 on machine 2 until 150 s.
    late = at >= 151
    np.testing.assert_allclose(shares.busy[[0, 1, 3]][:, late], 1.0)
    np.testing.assert_allclose(shares.busy[2, late], 0.0, atol=1e-12)
    assert not shares.absent.any()


def test_the_mean_of_all_cells_is_the_utilisation(runs: list[Results]) -> None:
    for run in runs:
        shares = busy_shares(run)
        assert shares is not None
        steps = utilisation_steps(run, stays_of(run))
        np.testing.assert_allclose(shares.busy.mean(axis=0), steps.averaged(shares.edges_s).values[:-1], atol=1e-9)
        # It failed for hours.
        assert (shares.absent[3] > 0.999).any()


def test_many_machines_share_rows_and_the_caption_says_so(crowded: Results) -> None:
    shares, section = busy_shares(crowded), heat_map_section(crowded)

    assert shares is not None
    assert section is not None
    assert len(shares.busy) == 128
    assert "1,000 machines share 128 rows" in section.content
