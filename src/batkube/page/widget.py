"""The page of runs as a widget of a notebook: `show(run)` displays it, and its instant and selection are Python values.

The page is in a frame of its own, as `batkube show -o` writes it, without access to the notebook. It exchanges one text
with Python: the fragment that is in the address bar of a page elsewhere, such as `#t=3600&job=w0!17`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote

from batkube.kernel.errors import InputError
from batkube.kernel.instants import Instant, format_seconds, seconds
from batkube.outputs.measures.run_data.run_files import RunFiles
from batkube.outputs.playback.playback import Playback
from batkube.outputs.playback.states import State
from batkube.page.document import page_of_runs

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError("the page in a notebook needs anywidget: pip install 'batkube[widget]'") from error

_KINDS = ("node", "job", "pod")
_HEIGHT_PX = 860
#: What encodeURIComponent leaves as it is, in addition to letters, digits and `-_.~`.
_UNQUOTED = "!'()*"


class PageSelection(NamedTuple):
    """What is selected on a page."""

    #: `node`, `job` or `pod`.
    kind: str
    name: str
    #: 1, or 2 for the second run of two.
    run: int = 1


class PageWidget(anywidget.AnyWidget):
    """The page of one run, or of two side by side.

    `instant` (nanoseconds) and `selection` follow the page, and move it when they are set. They can be observed, as all
    traits.
    """

    _esm = Path(__file__).parent / "static" / "widget.js"

    document = traitlets.Unicode(read_only=True).tag(sync=True)
    #: Height of the page in pixels.
    height = traitlets.Int(_HEIGHT_PX, min=100).tag(sync=True)
    #: The instant and the selection as a fragment of the page's address.
    place = traitlets.Unicode("").tag(sync=True)
    instant = traitlets.Int(0, min=0)
    selection = traitlets.Instance(PageSelection, allow_none=True)

    def __init__(self, *folders: str | Path, **traits: Any) -> None:  # noqa: ANN401 - traits and their values
        self._folders = [Path(folder) for folder in folders]
        self._playbacks: dict[int, Playback] = {}
        document = page_of_runs(self._folders)
        super().__init__(**traits)
        self.set_trait("document", document)

    def playback(self, run: int = 1) -> Playback:
        """Return a run of the page; it is read once."""
        if run not in self._playbacks:
            self._playbacks[run] = Playback.read(self._folders[run - 1])
        return self._playbacks[run]

    def state(self, run: int = 1) -> State:
        """Return the state of a run at the instant of the page."""
        return self.playback(run).state_at(Instant(self.instant))

    @traitlets.observe("place")
    def _on_place(self, change: dict[str, Any]) -> None:
        instant, selection = place_of(change["new"])
        with self.hold_trait_notifications():
            self.instant, self.selection = self.instant if instant is None else instant, selection

    @traitlets.observe("instant", "selection")
    def _on_instant_or_selection(self, _: object) -> None:
        if place_of(self.place) != (self.instant, self.selection):
            self.place = fragment_of(Instant(self.instant), self.selection)

    @traitlets.validate("instant")
    def _validate_instant(self, proposal: dict[str, Any]) -> int:
        # The page has microseconds.
        return int(proposal["value"]) // 1000 * 1000

    @traitlets.validate("selection")
    def _validate_selection(self, proposal: dict[str, Any]) -> PageSelection | None:
        selection: PageSelection | None = proposal["value"]
        if selection is not None and (selection.kind not in _KINDS or not 1 <= selection.run <= len(self._folders)):
            raise traitlets.TraitError(f"{selection} is not a {', '.join(_KINDS)} of a run of this page")
        return selection


def show(*runs: RunFiles | str | Path, height: int = _HEIGHT_PX) -> PageWidget:
    """Return the page of a run, or of two side by side, as a widget; a notebook displays it. Raises InputError."""
    if not runs:
        raise InputError("show", problem="has no run to show", remedy="show(run), or show(run, other)")
    return PageWidget(*(run.path if isinstance(run, RunFiles) else run for run in runs), height=height)


def fragment_of(instant: Instant, selection: PageSelection | None) -> str:
    """Return the fragment of a place, as page/src/link.ts writes it."""
    whole, _, decimals = format_seconds(instant).partition(".")
    parts = [f"t={whole}" + (f".{digits}" if (digits := decimals.rstrip("0")) else "")]
    if selection is not None:
        parts.append(f"{selection.kind}={quote(selection.name, safe=_UNQUOTED)}")
        if selection.run > 1:
            parts.append(f"run={selection.run}")
    return f"#{'&'.join(parts)}"


def place_of(fragment: str) -> tuple[Instant | None, PageSelection | None]:
    """Return the instant and the selection of a fragment; None for what it does not have."""
    values = parse_qs(fragment.removeprefix("#").replace("+", "%2B"))
    kind = next((kind for kind in _KINDS if kind in values), None)
    instant = Instant(seconds(values["t"][0])) if "t" in values else None
    if kind is None:
        return instant, None
    return instant, PageSelection(kind, values[kind][0], int(values.get("run", ["1"])[0]))
