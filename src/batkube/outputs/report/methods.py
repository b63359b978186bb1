"""A paragraph for the methods section of a paper, generated from the manifests of the runs.

It has the facts that a reader needs to judge and repeat the runs: versions, schedulers with their builds and
configurations, workloads and platforms with hashes, seeds, options of the model that differ from their defaults, and
fidelity notes. Facts that all runs have in common are given once. Sentences have code between backticks until they are
rendered as text or LaTeX.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batkube.kernel.fidelity import Severity
from batkube.kernel.instants import human_duration, seconds
from batkube.outputs.pages.latex import escape
from batkube.outputs.report.citation import KEY
from batkube.outputs.report.histories import histories_in, origin_phrase
from batkube.workloads.history import HASH_CHARACTERS

#: Placeholder in a sentence for the citation of Batkube.
_CITATION_MARK = "\N{REFERENCE MARK}"
_CODE = re.compile("`([^`]*)`")
#: Longest enumeration; of further items, only the number is given.
_MAX_NAMES = 8
_POLICY, _MIB = "policy:", 2**20


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The files of a run that a methods paragraph is generated from."""

    manifest: Mapping[str, Any]
    notes: Sequence[Mapping[str, Any]]

    @property
    def scenario(self) -> Mapping[str, Any]:
        """The scenario, with all its keys."""
        scenario: Mapping[str, Any] = self.manifest["scenario"]
        return scenario


def methods_text(runs: Sequence[RunFacts], failed: int = 0) -> str:
    """Return the paragraph as plain text; `failed` is the number of further runs without results."""
    text = " ".join(_sentences(runs, failed)).replace(_CITATION_MARK, "")
    return _CODE.sub(lambda match: match[1], text)


def methods_latex(runs: Sequence[RunFacts], failed: int = 0) -> str:
    r"""Return the paragraph as LaTeX, with `\cite{batkube}` in it: a sentence a line."""
    return "\n".join(_latex(sentence) for sentence in _sentences(runs, failed))


def _latex(sentence: str) -> str:
    parts = _CODE.split(sentence)
    texts = [rf"\texttt{{{escape(part)}}}" if number % 2 else _prose(part) for number, part in enumerate(parts)]
    return "".join(texts)


def _prose(text: str) -> str:
    return rf"~\cite{{{KEY}}}".join(escape(part) for part in text.split(_CITATION_MARK))


def _sentences(runs: Sequence[RunFacts], failed: int) -> Iterator[str]:
    versions = _enumerated(sorted({str(run.manifest["batkube"]) for run in runs}))
    pythons = _enumerated(sorted({str((run.manifest.get("real") or {}).get("python", "?")) for run in runs}))
    subject = {1: "The run was", 2: "Both runs were"}.get(len(runs), f"All {len(runs):,} runs were")
    yield f"{subject} simulated with Batkube {versions}{_CITATION_MARK} (Python {pythons})."
    if failed:
        yield f"{failed:,} more run{'s' * (failed != 1)} failed and {'has' if failed == 1 else 'have'} no results."
    copies = len(runs) - len({_observation(run) for run in runs})
    if copies:
        verbs = ("is", "counts") if copies == 1 else ("are", "count")
        yield f"{copies:,} of them {verbs[0]} byte-identical to another run and {verbs[1]} once."
    yield from _common_or_each("The scheduler was {}.", "The schedulers were {}.", runs, _scheduler)
    yield from _common_or_each("The workload was {}.", "The workloads were {}.", runs, _workload)
    yield from _histories(runs)
    yield from _generated_job_counts(runs)
    yield from _common_or_each("The cluster had {}.", "The clusters had {}.", runs, _platform)
    yield from _resources(runs)
    yield f"{_seeds(runs)}."
    yield from _options(runs)
    yield from _repeatable(runs)
    yield from _notes(runs)


def _observation(run: RunFacts) -> tuple[str, str]:
    """Return a key that is equal for runs that count once: same results, and same scenario but for the seed.

    Two schedulers that make the same decisions are two observations, one of each.
    """
    scenario = {key: value for key, value in run.scenario.items() if key != "seed"}
    return json.dumps(scenario, sort_keys=True, default=str), str(run.manifest.get("digest"))


def _common_or_each(
    singular: str, plural: str, runs: Sequence[RunFacts], describe: Callable[[RunFacts], str]
) -> Iterator[str]:
    """Yield a sentence with the distinct descriptions of the runs; nothing if all are empty."""
    texts = list(dict.fromkeys(text for run in runs if (text := describe(run))))
    if len(texts) == 1:
        yield singular.format(texts[0])
    elif texts:
        yield plural.format(_enumerated(texts))


def _enumerated(texts: Sequence[str], separator: str = ", ") -> str:
    if len(texts) > _MAX_NAMES:
        texts = [*texts[:_MAX_NAMES], f"{len(texts) - _MAX_NAMES:,} more"]
    if len(texts) < 2:
        return "".join(texts)
    end = separator if separator != ", " or len(texts) > 2 else " "
    return f"{separator.join(texts[:-1])}{end}and {texts[-1]}"


def _hash_of(run: RunFacts, path: object) -> str:
    """Return the shortened hash of an input in brackets; empty if the manifest does not have it."""
    plain = str(Path(str(path)))
    hashes = {str(Path(entry["path"])): entry["sha256"] for entry in run.manifest.get("inputs") or ()}
    return f" (SHA-256 `{hashes[plain][:HASH_CHARACTERS]}`)" if plain in hashes else ""


def _scheduler(run: RunFacts) -> str:
    scenario = run.scenario
    schedulers = scenario["scheduler"] if isinstance(scenario["scheduler"], list) else [scenario["scheduler"]]
    builds = {str(program.get("name")): program for program in run.manifest.get("programs") or ()}
    text = _enumerated([_one_scheduler(str(one), builds, run) for one in schedulers])
    if scenario.get("scheduler-config"):
        path = str(scenario["scheduler-config"])
        text += f" with the configuration `{Path(path).name}`{_hash_of(run, path)}"
    arguments = [f"`{name}={value}`" for name, value in (scenario.get("scheduler-args") or {}).items()]
    return f"{text} with {_enumerated(arguments)}" if arguments else text


def _one_scheduler(text: str, builds: Mapping[str, Mapping[str, Any]], run: RunFacts) -> str:
    if text.startswith(_POLICY):
        name = text.removeprefix(_POLICY)
        path, colon, kind = name.rpartition(":")
        if not colon:
            return f"Batkube's policy `{name}`"
        return f"the policy `{kind}` in `{Path(path).name}`{_hash_of(run, path)}"
    _, _, name = text.rpartition("=") if "=" in text.partition(" ")[0] else ("", "", text)
    build = builds.get(name) or builds.get(name.partition(" ")[0])
    if build is None:
        return f"`{Path(name.partition(' ')[0]).name}`"
    version = f", version {build['version']}" if build.get("version") else ""
    sha256 = str(build.get("sha256"))[:HASH_CHARACTERS]
    title = Path(name.partition(" ")[0]).name
    return f"the real program `{title}` on the virtual clock{version} (SHA-256 `{sha256}`)"


def _workload(run: RunFacts) -> str:
    sources = _sources(run)
    jobs = run.manifest.get("jobs")
    is_counted = isinstance(jobs, int) and not any(isinstance(source, Mapping) for source in sources)
    text = _enumerated([_one_workload(source, run) for source in sources])
    return f"{text} with {jobs:,} job{'s' * (jobs != 1)}" if is_counted else text


def _sources(run: RunFacts) -> list[object]:
    sources = run.scenario["workload"]
    return sources if isinstance(sources, list) else [sources]


def _generated_job_counts(runs: Sequence[RunFacts]) -> Iterator[str]:
    """Yield the number of jobs that were drawn, if the scenarios do not specify it."""
    counts = [
        int(run.manifest.get("jobs") or 0)
        for run in runs
        for source in _sources(run)
        if isinstance(source, Mapping) and "jobs" not in source and "job" not in str(source.get("window"))
    ]
    if counts:
        least, most = min(counts), max(counts)
        yield f"It had {least:,} job{'s' * (least != 1)}." if least == most else f"It had {least:,} to {most:,} jobs."


def _histories(runs: Sequence[RunFacts]) -> Iterator[str]:
    """Yield a sentence for each workload file that Batkube made: a converted trace differs from the original."""
    entries = (entry for run in runs for entry in histories_in(run.manifest))
    yield from dict.fromkeys(f"`{Path(path).name}` was {origin_phrase(steps)}." for path, steps in entries)


def _one_workload(source: object, run: RunFacts) -> str:
    if not isinstance(source, Mapping):
        return f"`{Path(str(source)).name}`{_hash_of(run, source)}"
    recipe = {str(key): value for key, value in source.items()}
    seed = "its own seed" if "seed" in recipe and recipe["seed"] != "${seed}" else "the run's seed"
    trace, kind, overlap = recipe.pop("resample", None), recipe.pop("generate", None), recipe.pop("overlap", True)
    if trace is None:
        return f"a synthetic workload of the model `{kind}`{_recipe_options(recipe)}, drawn with {seed}"
    file = f"`{Path(str(trace)).name}`{_hash_of(run, trace)}"
    if window := recipe.pop("window", None):
        disjoint = "" if overlap else " such that no two overlap"
        return f"a window of {_amount(window)} of {file}{_recipe_options(recipe)}, drawn with {seed}{disjoint}"
    blocks, length = recipe.pop("blocks", None), recipe.pop("length", None)
    options = _recipe_options(recipe)
    return f"{length} of {file}{options} in blocks of {blocks}, drawn with replacement and with {seed}"


def _recipe_options(recipe: Mapping[str, object]) -> str:
    """Return the remaining options of a recipe, in brackets."""
    options = [f"{key} {value}" for key, value in recipe.items() if value != "${seed}"]
    separator = "; " if any("," in option for option in options) else ", "
    return f" ({separator.join(options)})" if options else ""


def _amount(text: object) -> str:
    """Return the length of a window or a trim, for a sentence: `500 jobs`, `5% of the jobs`, `2d`."""
    amount = re.sub(r"(?<=\d)(?=jobs?$)", " ", str(text).strip())
    return f"{amount} of the jobs" if amount.endswith("%") else amount


def _platform(run: RunFacts) -> str:
    machines = (run.manifest.get("platform") or {}).get("machines") or ()
    kinds = Counter(_machine(machine) for machine in machines)
    groups = [f"{count:,} machine{'s' * (count != 1)} with {kind}" for kind, count in kinds.items()]
    file = _hash_of(run, run.scenario["platform"])
    source = f", as in `{Path(str(run.scenario['platform'])).name}`{file}" if file else ""
    return f"{_enumerated(groups)}{source}"


def _machine(machine: Mapping[str, Any]) -> str:
    capacity = machine.get("capacity") or {}
    cores = (machine.get("cpu_milli") or 0) / 1000
    texts = [f"{cores:g} core{'s' * (cores != 1)}"]
    if capacity.get("memory"):
        texts.append(f"{capacity['memory'] / _MIB / 1024:g} GiB")
    texts += [
        f"{amount:,} {name}" for name, amount in capacity.items() if "/" in name and not name.startswith("batkube")
    ]
    return _enumerated(texts)


def _resources(runs: Sequence[RunFacts]) -> Iterator[str]:
    models = {str(run.manifest.get("resources")) for run in runs}
    sentences = {
        "machines": "Jobs were allocated whole machines.",
        "requests": "Jobs shared machines according to their resource requests.",
    }
    if len(models) == 1 and (model := models.pop()) in sentences:
        yield sentences[model]
    elif len(models) > 1:
        yield "In some runs jobs were allocated whole machines, in others they shared machines by resource requests."


def _seeds(runs: Sequence[RunFacts]) -> str:
    seeds = sorted({int(run.manifest.get("seed") or 0) for run in runs})
    if len(seeds) == 1:
        return f"The seed of all random streams was {seeds[0]}"
    whole = seeds == list(range(seeds[0], seeds[-1] + 1))
    text = f"{seeds[0]} to {seeds[-1]}" if whole and len(seeds) > 2 else _enumerated([str(seed) for seed in seeds])
    return f"The seeds of the random streams were {text}"


def _options(runs: Sequence[RunFacts]) -> Iterator[str]:
    """Yield the options of all runs, then each other one with its number of runs: it may explain a difference."""
    counts = Counter(text for run in runs for text in _options_of(run))
    if common := "; ".join(text for text, count in counts.items() if count == len(runs)):
        yield f"{common[:1].upper()}{common[1:]}."
    others = [f"{text} ({_share_of_runs(count, runs)})" for text, count in counts.items() if count < len(runs)]
    if others:
        yield f"Runs differed in their options: {_enumerated(others, '; ')}."


def _share_of_runs(count: int, runs: Sequence[RunFacts]) -> str:
    return f"in {count:,} of {len(runs):,} runs"


def _options_of(run: RunFacts) -> list[str]:
    """Return a phrase for each option of the model that is not at its default, and for the latencies."""
    scenario = run.scenario
    texts = [
        phrase.format(scenario[key])
        for key, (default, phrase) in _OPTION_PHRASES.items()
        if scenario.get(key) != default
    ]
    latencies = run.manifest.get("latencies") or {}
    steps = _enumerated([f"{step} `{text}`" for step, text in latencies.items()])
    file = scenario.get("latencies")
    texts.insert(
        0,
        f"pod latencies were {steps} (s){_hash_of(run, file)}"
        if latencies
        else "pods started and ended without latency",
    )
    if scenario.get("events"):
        texts.append(f"a timeline of events changed nodes and objects{_hash_of(run, scenario['events'])}")
    if scenario.get("until"):
        texts.append(f"runs ended after {human_duration(seconds(scenario['until']))}")
    trims = [
        f"the {end} {_amount(scenario[key])}"
        for key, end in (("warm-up", "first"), ("cool-down", "last"))
        if scenario.get(key)
    ]
    if trims:
        texts.append(f"means exclude {_enumerated(trims)}")
    return texts


#: Keys of a scenario with their defaults, and phrases for other values.
_OPTION_PHRASES: dict[str, tuple[object, str]] = {
    "time": ("exact", "time was `{}`"),
    "decision-cost": ("zero", "the decision cost was `{}`"),
    "on-eviction": ("resubmit", "evicted jobs were not resubmitted"),
    "on-failure": ("resubmit", "jobs whose nodes failed were not resubmitted"),
    "submit-as": (None, "jobs were submitted as `{}`"),
    "controllers": (None, "controllers were `{}`"),
    "rules": (None, "containers followed the scenario's rules"),
    "engine": (None, "jobs were executed by `{}`"),
    "energy": (False, "energy was measured"),
}


def _repeatable(runs: Sequence[RunFacts]) -> Iterator[str]:
    def is_repeatable(run: RunFacts) -> bool:
        scenario = run.scenario
        return (
            scenario.get("time") == "exact"
            and bool(scenario.get("deterministic"))
            and scenario.get("decision-cost") != "measured"
        )

    if not all(map(is_repeatable, runs)):
        yield "Some events follow real time, so that a repetition differs in details."
    elif len(runs) == 1:
        yield f"A repetition gives byte-identical results (digest `{runs[0].manifest['digest']}`)."
    else:
        yield "A repetition gives byte-identical results; the digests of the runs are in their manifests."


def _notes(runs: Sequence[RunFacts]) -> Iterator[str]:
    """Yield the runs' fidelity notes, violations first, so that a reader can judge the results."""
    counts: Counter[tuple[str, str, str]] = Counter()
    run_counts: Counter[tuple[str, str, str]] = Counter()
    for run in runs:
        for note in run.notes:
            key = str(note.get("severity")), str(note.get("subject")), str(note.get("message"))
            counts[key] += int(note.get("count") or 0)
            run_counts[key] += 1
    for severity, lead in (
        (
            Severity.VIOLATION,
            "Schedulers violated rules of every cluster, so these numbers are of an impossible schedule",
        ),
        (Severity.WARNING, "Limitations of the model"),
    ):
        texts = [
            f"{subject}: {message} ({counts[key]:,}×"
            f"{f' {_share_of_runs(run_counts[key], runs)}' if len(runs) > 1 else ''})"
            for key in counts
            for level, subject, message in [key]
            if level == severity
        ]
        if texts:
            yield f"{lead}: {_enumerated(texts, '; ')}."
