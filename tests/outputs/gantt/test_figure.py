"""Gantt charts as figures: positions of rectangles."""

from __future__ import annotations

import numpy as np

from batkube.outputs.results import Results


def test_the_hover_rectangles_lie_on_the_boxes(small: Results) -> None:
    from batkube.outputs.gantt.figure import box_outlines_pt, build
    from batkube.outputs.gantt.model import gantt_model_of

    picture = gantt_model_of(small, title=None, color_by="job", window=None)
    figure = build(picture)
    figure.set_dpi(72)
    height_pt = figure.get_figheight() * 72

    outlines = box_outlines_pt(picture)

    to_page = figure.axes[0].transData
    corners = to_page.transform(np.stack((picture.boxes.left, picture.boxes.top), axis=1))
    np.testing.assert_allclose(outlines[:, 0], corners[:, 0])
    np.testing.assert_allclose(outlines[:, 1], height_pt - corners[:, 1])
