"""Workloads that a run makes for itself, drawn from a seed: generated ones, and parts of a trace.

In a scenario they stand in the place of a file: `workload: {generate: lublin, jobs: 500}` or
`workload: {resample: trace.swf, window: 7d}`. Unless they name a seed of their own it is the run's, so that the seeds
of an experiment are workloads, and schedulers are compared on the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from batkube.kernel.distributions import Distribution
from batkube.kernel.errors import InputError
from batkube.kernel.instants import Duration
from batkube.kernel.quantities import MEMORY
from batkube.kernel.spelling import nearest
from batkube.kernel.streams import Streams
from batkube.workloads import conversions, generators, option_values, resampling, selection
from batkube.workloads.model import Workload
from batkube.workloads.reading import read_workload

#: What makes a mapping a recipe, and what each may say besides.
GENERATE, RESAMPLE = "generate", "resample"
_SHAPING = ("run-time", "size", "cpu", "memory", "walltime")
WORDS_OF_KIND = {
    "burst": _SHAPING,
    "spaced": ("interval", *_SHAPING),
    "poisson": ("rate", "interval", *_SHAPING),
    "lublin": ("machines", "by-type"),
}
_OF_ALL: tuple[str, ...] = (GENERATE, "jobs", "seed")
_OF_RESAMPLING: tuple[str, ...] = (RESAMPLE, "window", "overlap", "blocks", "length", "rate", "machines", "seed")
#: How a recipe says that its seed is the run's; the same as saying nothing.
RUN_SEED = "${seed}"
_JOBS = re.compile(r"([1-9]\d*)\s*jobs?")
_MACHINES = 128
_STREAM = "workload.resampling"


@dataclass(frozen=True, slots=True)
class Wording:
    """Where the words of a recipe stand, for messages."""

    #: The file; empty for a command, whose options they are.
    source: str = ""

    def place(self, word: str) -> str:
        """Return where a word stands."""
        return f"{self.source}: workload.{word}".rstrip(".") if self.source else f"--{word}"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a workload is made; `words` as somebody wrote them, checked."""

    words: Mapping[str, object]
    wording: Wording

    def place(self, word: str) -> str:
        """Return where a word stands, for messages."""
        return self.wording.place(word)

    @property
    def trace(self) -> Path | None:
        """The file it draws from, if it draws from one."""
        return Path(str(self.words[RESAMPLE])) if RESAMPLE in self.words else None

    def make(self, run_seed: int, name: str = "w0") -> Workload:
        """Return the workload, drawn from the recipe's seed or else the run's. Raises InputError."""
        seed = self.seed if self.seed is not None else run_seed
        workload = self._resampled(seed, name) if self.trace is not None else self._generated(seed, name)
        return replace(workload, name=name)

    @property
    def seed(self) -> int | None:
        """Its own seed; None for the run's."""
        seed = self.words.get("seed", RUN_SEED)
        return None if seed == RUN_SEED else self._whole("seed", seed, least=None)

    def check(self) -> None:
        """Refuse what cannot be made, as far as it can be told without a trace at hand."""
        if self.trace is None:
            self._whole("jobs", self.words.get("jobs", 1))
            replace(self, words={**self.words, "jobs": 1}).make(0)
        else:
            self._draw_checked()
            _ = self.seed, self._rate_factor, self._machines

    def _generated(self, seed: int, name: str) -> Workload:
        count = self._whole("jobs", self.words.get("jobs", 200))
        match self.words[GENERATE]:
            case "burst":
                return generators.burst(count, self._shape, seed, name)
            case "spaced":
                interval = option_values.time(self.place("interval"), self._text("interval") or "10s")
                return generators.spaced(count, interval, self._shape, seed, name)
            case "poisson":
                return generators.poisson(count, self._rate, self._shape, seed, name)
            case _:
                by_type = self._flag("by-type", default=False)
                return generators.lublin(count, self._machines or _MACHINES, by_type=by_type, seed=seed, name=name)

    @property
    def _shape(self) -> generators.JobShape:
        def drawn(word: str, default: str | None, least: float) -> Distribution | None:
            text = self._text(word) or default
            return None if text is None else option_values.distribution(self.place(word), text, least)

        memory = self._text("memory")
        run_time, size = drawn("run-time", "170", 0), drawn("size", "1", 1)
        assert run_time is not None
        assert size is not None
        return generators.JobShape(
            run_time=run_time,
            size=size,
            cpu=drawn("cpu", None, 0.001),
            memory_bytes=None if memory is None else option_values.quantity(self.place("memory"), MEMORY, memory),
            walltime=drawn("walltime", None, 0.001),
        )

    @property
    def _rate(self) -> float:
        rate, interval = self._text("rate"), self._text("interval")
        if (rate is None) == (interval is None):
            names = f"{self.place('rate')} and {self.place('interval')}"
            raise InputError(self.place(GENERATE), problem=f"poisson needs one of {names}")
        if rate is not None:
            return float(option_values.factor(self.place("rate"), rate))
        mean = option_values.time(self.place("interval"), str(interval))
        if mean <= 0:
            raise InputError(self.place("interval"), problem="must be longer than 0")
        return 1e9 / mean

    def _resampled(self, seed: int, name: str) -> Workload:
        assert self.trace is not None
        workload = read_workload(self.trace, name)
        draw = self._draw_checked()
        if self._machines is not None:
            workload = replace(workload, size_machines=self._machines)
        drawn = selection.about_the_whole(selection.recount_overruns(draw(workload, Streams(seed))))
        return drawn if self._rate_factor is None else conversions.scale_arrival_rate(drawn, self._rate_factor)

    def _draw_checked(self) -> Callable[[Workload, Streams], Workload]:
        """Return how the trace is drawn from."""
        window, blocks, length = self._text("window"), self._text("blocks"), self._text("length")
        if (window is None) == (blocks is None):
            names = f"{self.place('window')} and {self.place('blocks')}"
            raise InputError(self.place(RESAMPLE), problem=f"needs one of {names}", remedy="such as a window of 7d")
        if (blocks is None) != (length is None):
            problem = "blocks and the length that they fill go together"
            raise InputError(self.place("length"), problem=problem, remedy="such as blocks of 1d and a length of 7d")
        if window is not None:
            return self._window_checked(window)
        if "overlap" in self.words:
            problem = "is about windows; blocks are drawn with replacement"
            raise InputError(self.place("overlap"), problem=problem, remedy="leave it out, or ask for a window")
        block, whole = self._length("blocks", str(blocks)), self._length("length", str(length))
        return lambda trace, streams: resampling.blocks_in_a_row(trace, block, whole, streams.named(_STREAM))

    def _window_checked(self, window: str) -> Callable[[Workload, Streams], Workload]:
        overlap = self._flag("overlap", default=True)
        if match := _JOBS.fullmatch(window.strip()):
            jobs = int(match[1])
            if overlap:
                return lambda trace, streams: resampling.window_of_jobs(trace, jobs, streams.named(_STREAM))
            return lambda trace, streams: resampling.separate_window_of_jobs(trace, jobs, streams.seed)
        span = self._length("window", window)
        if overlap:
            return lambda trace, streams: resampling.window_in_time(trace, span, streams.named(_STREAM))
        return lambda trace, streams: resampling.separate_window_in_time(trace, span, streams.seed)

    @property
    def _rate_factor(self) -> Fraction | None:
        text = self._text("rate")
        factor = None if text is None else option_values.factor(self.place("rate"), text)
        if factor is not None and factor <= 0:
            raise InputError(self.place("rate"), problem=f"must be larger than 0, not {text}")
        return factor

    @property
    def _machines(self) -> int | None:
        machines = self.words.get("machines")
        return None if machines is None else self._whole("machines", machines)

    def _length(self, word: str, text: str) -> Duration:
        length = option_values.time(self.place(word), text)
        if length <= 0:
            raise InputError(self.place(word), problem="must be longer than 0")
        return length

    def _flag(self, word: str, *, default: bool) -> bool:
        value = self.words.get(word, default)
        if not isinstance(value, bool):
            raise InputError(self.place(word), problem=f"{value!r} is neither true nor false")
        return value

    def _text(self, word: str) -> str | None:
        value = self.words.get(word)
        return None if value is None else str(value)

    def _whole(self, word: str, value: object, least: int | None = 1) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or (least is not None and value < least):
            remedy = "a whole number" if least is None else f"a whole number, {least} or more"
            raise InputError(self.place(word), problem=f"{value!r} is not possible", remedy=remedy)
        return value


def read_recipe(words: Mapping[str, object], wording: Wording, beside: Path | None = None) -> Recipe:
    """Return the recipe that `words` are; the path of a trace is relative to the folder `beside`. Raises InputError."""
    if (GENERATE in words) == (RESAMPLE in words):
        problem = "is no workload that can be made: it needs one of 'generate' and 'resample'"
        raise InputError(wording.place(""), problem=problem, remedy="such as {generate: lublin, jobs: 500}, or a path")
    checked = {str(word): value for word, value in words.items() if value is not None}
    if RESAMPLE in checked:
        if not isinstance(checked[RESAMPLE], str | Path):
            raise InputError(wording.place(RESAMPLE), problem=f"{checked[RESAMPLE]!r} is not the path of a trace")
        checked[RESAMPLE] = str((beside or Path()) / str(checked[RESAMPLE]))
        kind, known = RESAMPLE, _OF_RESAMPLING
    else:
        kind = str(checked[GENERATE])
        if kind not in WORDS_OF_KIND:
            problem, remedy = f"there is no kind {kind!r}", f"kinds: {', '.join(WORDS_OF_KIND)}"
            raise InputError(wording.place(GENERATE), problem=problem, remedy=remedy)
        known = (*_OF_ALL, *WORDS_OF_KIND[kind])
    for word in checked:
        if word not in known:
            remedy = (
                nearest(word, known) if wording.source else f"options of {kind}: --{', --'.join(known[len(_OF_ALL) :])}"
            )
            raise InputError(wording.place(word), problem=f"means nothing for {kind}", remedy=remedy)
    recipe = Recipe(checked, wording)
    recipe.check()
    return recipe
