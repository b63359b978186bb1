"""What the page shows at an instant is the state of the playback, whichever instant it showed before."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.outputs.playback.lives import Lives, lives
from tests.page.pages import PageOpener, as_shown, page_of

from batkube.kernel.instants import Instant
from batkube.outputs.playback.playback import Playback
from batkube.outputs.playback.states import state_of
from batkube.page.columns import resources_of
from batkube.page.document import page_of_runs


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=st.lists(lives(), min_size=15, max_size=15), order=st.permutations(range(10)))
def test_any_instant_can_be_shown_after_any_other(open_page: PageOpener, runs: list[Lives], order: list[int]) -> None:
    """Many runs on one page, because opening a page takes long."""
    page = open_page(page_of(*runs))

    for at in (Instant(1000 * at_us) for at_us in order):
        states = [state_of(run.nodes, run.jobs, run.pods, at) for run in runs]
        assert page.states_at(at) == [as_shown(state, ("cpu",)) for state in states]


def test_the_page_of_a_run_shows_the_states_of_its_playback(open_page: PageOpener, failing_run: Path) -> None:
    playback = Playback.read(failing_run)
    page = open_page(page_of_runs([failing_run]))
    instants = sorted({delta.at for delta in playback.deltas})
    generator = random.Random(0)

    shown = {node["status"] for at in instants for node in page.states_at(at)[0]["nodes"].values()}
    assert {"ready", "failed", "cordoned"} <= shown
    for at in [*generator.choices(instants, k=40), Instant(instants[-1] // 2 + 1000)]:
        expected = as_shown(playback.state_at(at), resources_of(playback.nodes))
        assert page.states_at(at) == [expected]
