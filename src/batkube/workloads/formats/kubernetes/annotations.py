"""Batkube's annotations on a Pod or Job: times and other properties for which manifests have no field.

batkube.io/duration    run time: `90` (seconds), `1h30m`, `250ms`; required
batkube.io/submit      submission time since the start of the run; default 0
batkube.io/walltime    time limit, after which the job is killed; default activeDeadlineSeconds, else no limit
batkube.io/exit-code   exit code; default 0
batkube.io/user        owner; default none
"""

from __future__ import annotations

from collections.abc import Mapping

from batkube.kernel.instants import Duration, TooLong, duration, seconds
from batkube.workloads import fields as require
from batkube.workloads.fields import Place

DURATION = "batkube.io/duration"
SUBMIT = "batkube.io/submit"
WALLTIME = "batkube.io/walltime"
EXIT_CODE = "batkube.io/exit-code"
USER = "batkube.io/user"


def read_annotations(place: Place, fields: Mapping[str, object]) -> dict[str, str]:
    """Return the annotations; those of the object override those of its pod template."""
    merged: dict[str, str] = {}
    spec = fields.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    for owner in (template, fields):
        metadata = owner.get("metadata") if isinstance(owner, Mapping) else None
        annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
        if annotations is not None:
            for key, value in require.mapping(place / "metadata" / "annotations", annotations).items():
                if isinstance(value, bool) or not isinstance(value, str | int | float):
                    (place / "metadata" / "annotations" / str(key)).reject(
                        f"is {require.abbreviated(value)}, which is not a text", "write it in quotes"
                    )
                merged[key] = str(value)
    return merged


def annotated_duration(place: Place, annotations: Mapping[str, str], key: str) -> Duration | None:
    """Return the annotation `key` as a duration; None if it is absent."""
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
    """Return the annotated walltime, or else the shorter activeDeadlineSeconds of the Job and of its pods.

    Raises TooLong if the walltime exceeds the longest possible run.
    """
    walltime = annotated_duration(place, annotations, WALLTIME)
    if walltime is None:
        object_spec = require.mapping(place / "spec", fields.get("spec"))
        deadlines = [
            require.positive_integer(owner_place / "activeDeadlineSeconds", owner["activeDeadlineSeconds"])
            for owner_place, owner in ((place / "spec", object_spec), (spec_place, spec))
            if owner.get("activeDeadlineSeconds") is not None
        ]
        return seconds(min(deadlines)) if deadlines else None
    if walltime <= 0:
        (place / WALLTIME).reject(
            f"is {annotations[WALLTIME]}, but must be positive", "remove the annotation for no limit"
        )
    return walltime
