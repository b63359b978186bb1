"""Fidelity notes and events about containers whose behaviour had to be guessed."""

from __future__ import annotations

from batkube.cluster.event_recorder import EventNote
from batkube.cluster.store import Key
from batkube.execution.pods.container_plan import ContainerPlan
from batkube.execution.pods.state import ContainerState
from batkube.kernel.fidelity import FidelityNote, FidelityNotes
from batkube.kernel.text.go_times import format_go_duration
from batkube.workloads.container_rules.rules import image_repository

_UNSUPPORTED_SCRIPT = FidelityNote(
    "containers", "a script is not fully supported: its length or exit code is a guess; a rule (--rules) can set them"
)


def note_guess(notes: FidelityNotes, pod: Key, container: ContainerState, plan: ContainerPlan) -> EventNote | None:
    """Note that a container's plan is a guess; return an event for it if its length is a default."""
    if plan.guess_reason:
        notes.add(_UNSUPPORTED_SCRIPT, example=f"pod {pod}, container {container.name}: {plan.guess_reason}")
    if not plan.has_default_length or plan.length is None:
        return None
    ends = f"after {format_go_duration(plan.length)}" if plan.length else "at once"
    if not plan.guess_reason:
        remedy = "a rule (--rules) or the annotation batkube.io/duration can say it"
        image = image_repository(container.image)
        message = f"nothing says how long containers of image {image} run: they ended {ends}; {remedy}"
        notes.add(FidelityNote("containers", message), example=f"pod {pod}, container {container.name}")
    message = f"Nothing says how long container {container.name} runs, so it is simulated to end {ends}"
    return EventNote("Warning", "UnknownRunTime", message)
