"""What Batkube's annotations on a Pod or Job say: its times, which a manifest has no field for.

batkube.io/duration    how long it runs: `90` (seconds), `1h30m`, `250ms`; required
batkube.io/submit      when it is submitted, from the start of the run; 0 when absent
batkube.io/walltime    after how long it is killed; else activeDeadlineSeconds; else never
batkube.io/exit-code   how it ends; 0 when absent
batkube.io/user        whose it is; nobody's when absent
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.kernel.instants import Duration, TooLong, duration, seconds
from batkube.workloads import fields as take
from batkube.workloads.fields import Place

DURATION = "batkube.io/duration"
SUBMIT = "batkube.io/submit"
WALLTIME = "batkube.io/walltime"
EXIT_CODE = "batkube.io/exit-code"
USER = "batkube.io/user"


def read_annotations(place: Place, fields: Mapping[str, object]) -> dict[str, str]:
    """Return our annotations; those of the object itself win over those of its pod template."""
    ours: dict[str, str] = {}
    spec = fields.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    for owner in (template, fields):
        metadata = owner.get("metadata") if isinstance(owner, Mapping) else None
        annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
        if annotations is not None:
            for key, value in take.mapping(place / "metadata" / "annotations", annotations).items():
                if isinstance(value, bool) or not isinstance(value, str | int | float):
                    (place / "metadata" / "annotations" / str(key)).reject(f"is {take.abbreviated(value)}, not a text")
                ours[key] = str(value)
    return ours


def annotated_duration(place: Place, annotations: Mapping[str, str], key: str) -> Duration | None:
    """Return the time that the annotation `key` gives; None when it is absent."""
    text = annotations.get(key)
    if text is None:
        return None
    try:
        return duration(text)
    except TooLong as error:
        if key == WALLTIME:
            raise
        (place / key).reject(str(error))
    except ValueError as error:
        (place / key).reject(str(error))


def walltime_of(
    place: Place,
    annotations: Mapping[str, str],
    fields: Mapping[str, object],
    spec_place: Place,
    spec: Mapping[str, object],
) -> Duration | None:
    """Return the annotation's walltime, or else the shorter active deadline of the Job and of its pods.

    Raises TooLong if there is one, and no run reaches it.
    """
    walltime = annotated_duration(place, annotations, WALLTIME)
    if walltime is None:
        object_spec = take.mapping(place / "spec", fields.get("spec"))
        deadlines = [
            take.positive_integer(owner_place / "activeDeadlineSeconds", owner["activeDeadlineSeconds"])
            for owner_place, owner in ((place / "spec", object_spec), (spec_place, spec))
            if owner.get("activeDeadlineSeconds") is not None
        ]
        return seconds(min(deadlines)) if deadlines else None
    if walltime <= 0:
        (place / WALLTIME).reject(f"is {annotations[WALLTIME]}, but a job needs some time to run")
    return walltime
