"""Fidelity notes and events about containers whose behaviour had to be guessed."""

from __future__ import annotations

from batkube.cluster.event_recorder import EventNote
from batkube.cluster.store import Key
from batkube.execution.pods.container_plan import ContainerPlan
from batkube.execution.pods.state import ContainerState
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.text.go_times import format_go_duration
from batkube.workloads.container_rules.rules import image_repository

_REMEDY = "a rule (--rules) or the annotation batkube.io/duration can set it"


def note_guess(notes: FidelityNotes, pod: Key, container: ContainerState, plan: ContainerPlan) -> EventNote | None:
    """Note that a container's plan is a guess, once per image; return the event that reports it."""
    is_default = plan.has_default_length and plan.length is not None
    if not plan.guess_reason and not is_default:
        return None
    image, example = image_repository(container.image), f"pod {pod}, container {container.name}"
    ends = f"after {format_go_duration(plan.length)}" if plan.length else "at once"
    if plan.guess_reason:
        message = f"a script of image {image} is not fully supported: its length or exit code is a guess"
        notes.add(FidelityNote("containers", f"{message}; {_REMEDY}"), example=f"{example}: {plan.guess_reason}")
    else:
        message = f"nothing says how long containers of image {image} run: they ended {ends}; {_REMEDY}"
        notes.add(FidelityNote("containers", message), example=example)
    if is_default:
        message = f"Nothing says how long container {container.name} runs, so it is simulated to end {ends}"
    else:
        message = f"The script of container {container.name} is not fully supported: {plan.guess_reason}"
    return EventNote("Warning", "UnknownRunTime", message)
