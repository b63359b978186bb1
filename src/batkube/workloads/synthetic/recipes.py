"""Recipes for workloads that are drawn from a seed when a run starts: generated jobs, or a sample of a trace.

A scenario has a recipe instead of a file: `workload: {generate: lublin, jobs: 500}` or
`workload: {resample: trace.swf, window: 7d}`. A recipe uses its own seed, or else the run's. In an experiment, each
seed is therefore another workload, and all schedulers are compared on the same ones.
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
from batkube.kernel.streams import Streams
from batkube.text.suggestions import suggestion
from batkube.workloads.model import Workload
from batkube.workloads.reader import read_workload
from batkube.workloads.synthetic import generators, option_values
from batkube.workloads.transformations import conversions, resampling, selection

#: The key that makes a mapping a recipe, and the keys of each kind.
GENERATE, RESAMPLE = "generate", "resample"
_SHAPE_KEYS = ("run-time", "size", "cpu", "memory", "walltime")
KEYS_OF_GENERATOR = {
    "burst": _SHAPE_KEYS,
    "spaced": ("interval", *_SHAPE_KEYS),
    "poisson": ("rate", "interval", *_SHAPE_KEYS),
    "lublin": ("machines", "by-type"),
}
_COMMON_KEYS: tuple[str, ...] = (GENERATE, "jobs", "seed")
_RESAMPLE_KEYS: tuple[str, ...] = (RESAMPLE, "window", "overlap", "blocks", "length", "rate", "machines", "seed")
#: The value of `seed` that means the run's seed; the default.
RUN_SEED = "${seed}"
_JOB_COUNT = re.compile(r"([1-9]\d*)\s*jobs?")
_DEFAULT_MACHINES = 128
_STREAM = "workload.resampling"


@dataclass(frozen=True, slots=True)
class RecipeSource:
    """Where the keys of a recipe come from, for messages."""

    #: The file; empty if the keys are options of a command.
    file: str = ""

    def place(self, key: str) -> str:
        """Return the place of a key."""
        return f"{self.file}: workload.{key}".rstrip(".") if self.file else f"--{key}"


@dataclass(frozen=True, slots=True)
class WorkloadRecipe:
    """A recipe, with validated options."""

    options: Mapping[str, object]
    source: RecipeSource

    def place(self, key: str) -> str:
        """Return the place of a key, for messages."""
        return self.source.place(key)

    @property
    def trace(self) -> Path | None:
        """The trace to resample, if any."""
        return Path(str(self.options[RESAMPLE])) if RESAMPLE in self.options else None

    def make(self, run_seed: int, name: str = "w0") -> Workload:
        """Create the workload with the recipe's seed, or else the run's. Raises InputError."""
        seed = self.seed if self.seed is not None else run_seed
        workload = self._resampled(seed, name) if self.trace is not None else self._generated(seed, name)
        return replace(workload, name=name)

    @property
    def seed(self) -> int | None:
        """The recipe's own seed; None for the run's."""
        seed = self.options.get("seed", RUN_SEED)
        return None if seed == RUN_SEED else self._integer("seed", seed, minimum=None)

    def validate(self) -> None:
        """Check the options, as far as possible without reading a trace. Raises InputError."""
        if self.trace is None:
            self._integer("jobs", self.options.get("jobs", 1))
            replace(self, options={**self.options, "jobs": 1}).make(0)
        else:
            self._sampler()
            _ = self.seed, self._rate_factor, self._machines

    def _generated(self, seed: int, name: str) -> Workload:
        count = self._integer("jobs", self.options.get("jobs", 200))
        match self.options[GENERATE]:
            case "burst":
                return generators.burst(count, self._shape, seed, name)
            case "spaced":
                interval = option_values.duration_option(self.place("interval"), self._string("interval") or "10s")
                return generators.spaced(count, interval, self._shape, seed, name)
            case "poisson":
                return generators.poisson(count, self._rate, self._shape, seed, name)
            case _:
                by_type = self._flag("by-type", default=False)
                return generators.lublin(
                    count, self._machines or _DEFAULT_MACHINES, by_type=by_type, seed=seed, name=name
                )

    @property
    def _shape(self) -> generators.JobShape:
        def distribution(key: str, default: str | None, minimum: float) -> Distribution | None:
            text = self._string(key) or default
            return None if text is None else option_values.distribution_option(self.place(key), text, minimum)

        memory = self._string("memory")
        run_time, size = distribution("run-time", "170", 0), distribution("size", "1", 1)
        assert run_time is not None
        assert size is not None
        return generators.JobShape(
            run_time=run_time,
            size=size,
            cpu=distribution("cpu", None, 0.001),
            memory_bytes=None
            if memory is None
            else option_values.quantity_option(self.place("memory"), MEMORY, memory),
            walltime=distribution("walltime", None, 0.001),
        )

    @property
    def _rate(self) -> float:
        rate, interval = self._string("rate"), self._string("interval")
        if (rate is None) == (interval is None):
            names = f"{self.place('rate')} and {self.place('interval')}"
            raise InputError(self.place(GENERATE), problem=f"poisson needs exactly one of {names}")
        if rate is not None:
            return float(option_values.factor_option(self.place("rate"), rate))
        mean = option_values.duration_option(self.place("interval"), str(interval))
        if mean <= 0:
            raise InputError(self.place("interval"), problem=f"is {interval}, but must be longer than 0")
        return 1e9 / mean

    def _resampled(self, seed: int, name: str) -> Workload:
        assert self.trace is not None
        return self.sample(read_workload(self.trace, name), seed)

    def sample(self, workload: Workload, run_seed: int) -> Workload:
        """Return a sample of the trace, which is already parsed. Raises InputError if the trace is too short."""
        seed = self.seed if self.seed is not None else run_seed
        draw = self._sampler()
        if self._machines is not None:
            workload = replace(workload, size_machines=self._machines)
        sample = selection.mark_notes_of_whole_trace(selection.recount_overruns(draw(workload, Streams(seed))))
        return sample if self._rate_factor is None else conversions.scale_arrival_rate(sample, self._rate_factor)

    def _sampler(self) -> Callable[[Workload, Streams], Workload]:
        """Return the function that samples the trace."""
        window, blocks, length = self._string("window"), self._string("blocks"), self._string("length")
        if (window is None) == (blocks is None):
            names = f"{self.place('window')} and {self.place('blocks')}"
            raise InputError(
                self.place(RESAMPLE), problem=f"needs exactly one of {names}", remedy="for example a window of 7d"
            )
        if (blocks is None) != (length is None):
            problem = f"{self.place('blocks')} and {self.place('length')} must be used together"
            remedy = "for example blocks of 1d and a length of 7d"
            raise InputError(self.place("length"), problem=problem, remedy=remedy)
        if window is not None:
            return self._window_sampler(window)
        if "overlap" in self.options:
            problem = "applies only to windows; blocks are drawn with replacement"
            raise InputError(
                self.place("overlap"), problem=problem, remedy="omit it, or use a window instead of blocks"
            )
        block, whole = self._length("blocks", str(blocks)), self._length("length", str(length))
        return lambda trace, streams: resampling.block_bootstrap(trace, block, whole, streams.named(_STREAM))

    def _window_sampler(self, window: str) -> Callable[[Workload, Streams], Workload]:
        overlap = self._flag("overlap", default=True)
        if match := _JOB_COUNT.fullmatch(window.strip()):
            jobs = int(match[1])
            if overlap:
                return lambda trace, streams: resampling.job_window(trace, jobs, streams.named(_STREAM))
            return lambda trace, streams: resampling.disjoint_job_window(trace, jobs, streams.seed)
        span = self._length("window", window)
        if overlap:
            return lambda trace, streams: resampling.time_window(trace, span, streams.named(_STREAM))
        return lambda trace, streams: resampling.disjoint_time_window(trace, span, streams.seed)

    @property
    def _rate_factor(self) -> Fraction | None:
        text = self._string("rate")
        factor = None if text is None else option_values.factor_option(self.place("rate"), text)
        if factor is not None and factor <= 0:
            raise InputError(self.place("rate"), problem=f"must be larger than 0, not {text}")
        return factor

    @property
    def _machines(self) -> int | None:
        machines = self.options.get("machines")
        return None if machines is None else self._integer("machines", machines)

    def _length(self, key: str, text: str) -> Duration:
        length = option_values.duration_option(self.place(key), text)
        if length <= 0:
            raise InputError(self.place(key), problem=f"is {text}, but must be longer than 0")
        return length

    def _flag(self, key: str, *, default: bool) -> bool:
        value = self.options.get(key, default)
        if not isinstance(value, bool):
            raise InputError(self.place(key), problem=f"{value!r} is neither true nor false")
        return value

    def _string(self, key: str) -> str | None:
        value = self.options.get(key)
        return None if value is None else str(value)

    def _integer(self, key: str, value: object, minimum: int | None = 1) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or (minimum is not None and value < minimum):
            expected = "a whole number" if minimum is None else f"a whole number of at least {minimum}"
            raise InputError(self.place(key), problem=f"{value!r} is not {expected}")
        return value


def parse_recipe(options: Mapping[str, object], source: RecipeSource, folder: Path | None = None) -> WorkloadRecipe:
    """Parse and validate a recipe; the path of a trace is relative to `folder`. Raises InputError."""
    if (GENERATE in options) == (RESAMPLE in options):
        problem = "is not a workload: it needs either 'generate' or 'resample'"
        remedy = "write a path, or for example {generate: lublin, jobs: 500}"
        raise InputError(source.place(""), problem=problem, remedy=remedy)
    present = {str(key): value for key, value in options.items() if value is not None}
    if RESAMPLE in present:
        if not isinstance(present[RESAMPLE], str | Path):
            raise InputError(source.place(RESAMPLE), problem=f"{present[RESAMPLE]!r} is not the path of a trace")
        present[RESAMPLE] = str((folder or Path()) / str(present[RESAMPLE]))
        kind, keys = RESAMPLE, _RESAMPLE_KEYS
    else:
        kind = str(present[GENERATE])
        if kind not in KEYS_OF_GENERATOR:
            place, remedy = source.place(GENERATE) if source.file else kind, suggestion(kind, KEYS_OF_GENERATOR)
            problem = f"{kind!r} is not a generator" if source.file else "is not a generator"
            raise InputError(place, problem=problem, remedy=remedy)
        keys = (*_COMMON_KEYS, *KEYS_OF_GENERATOR[kind])
    for key in present:
        if key not in keys:
            remedy = (
                suggestion(key, keys)
                if source.file
                else f"options of {kind}: --{', --'.join(keys[len(_COMMON_KEYS) :])}"
            )
            raise InputError(source.place(key), problem=f"is not an option of {kind}", remedy=remedy)
    recipe = WorkloadRecipe(present, source)
    recipe.validate()
    return recipe
