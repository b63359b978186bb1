"""Notes of containers of which nothing says what they do, or not all: what was guessed, and how to say it."""

from __future__ import annotations

from batkube.cluster.event_recorder import EventNote
from batkube.cluster.store import Key
from batkube.execution.pods.container_plan import ContainerPlan
from batkube.execution.pods.state import ContainerState
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.text.go_times import format_go_duration
from batkube.workloads.container_rules.rules import image_repository

_REMEDY = "a rule (--rules) or the annotation batkube.io/duration can say it"


def note_guess(notes: FidelityNotes, pod: Key, one: ContainerState, plan: ContainerPlan) -> EventNote | None:
    """Note that the plan of a pod's container is a guess, once for each image; return the event that says so."""
    is_default = plan.has_default_length and plan.length is not None
    if not plan.guess_reason and not is_default:
        return None
    image, example = image_repository(one.image), f"pod {pod}, container {one.name}"
    ends = f"after {format_go_duration(plan.length)}" if plan.length else "at once"
    if plan.guess_reason:
        message = f"a script of image {image} is not understood in full: how long it takes, or how it ends, is a guess"
        notes.add(FidelityNote("containers", f"{message}; {_REMEDY}"), example=f"{example}: {plan.guess_reason}")
    else:
        message = f"nothing says how long containers of image {image} run: they ended {ends}; {_REMEDY}"
        notes.add(FidelityNote("containers", message), example=example)
    if is_default:
        message = f"Nothing says how long container {one.name} runs, so it is simulated to end {ends}"
    else:
        message = f"The script of container {one.name} is not understood in full: {plan.guess_reason}"
    return EventNote("Warning", "UnknownRunTime", message)
