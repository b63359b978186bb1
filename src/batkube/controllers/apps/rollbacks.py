"""Rolling a Deployment back by annotation, as the first versions of the API asked for it.

`kubectl rollout undo` patches the template itself; this is for clients that still set the annotation (Kubernetes:
pkg/controller/deployment/rollback.go).
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.event_recorder import EventType
from batkube.cluster.object_meta import annotations_of, int_annotation, with_metadata
from batkube.cluster.store import KubeObject
from batkube.controllers.apps import rollout_plan as plan


def roll_back(deployment: KubeObject, owned: Sequence[KubeObject]) -> tuple[KubeObject, EventType, str, str]:
    """Return the deployment after the rollback it asks for, and the type, reason and message of the event."""
    name = deployment["metadata"]["name"]
    revision = _revision(deployment, owned)
    target = next((one for one in owned if revision and plan.revision_of(one) == revision), None)
    asked_no_more = {key: text for key, text in annotations_of(deployment).items() if key != plan.ROLLBACK_TO}
    unchanged = with_metadata(deployment, annotations=asked_no_more)
    if target is None:
        message = "Unable to find the revision to rollback to." if revision else "Unable to find last revision."
        return unchanged, "Warning", "DeploymentRollbackRevisionNotFound", message
    if plan.same_template(target["spec"]["template"], deployment["spec"]["template"]):
        message = f'The rollback revision contains the same template as current deployment "{name}"'
        return unchanged, "Warning", "DeploymentRollbackTemplateUnchanged", message
    changed = with_metadata(deployment, annotations=plan.annotations_after_rollback(deployment, target))
    template = plan.template_without_hash(target["spec"]["template"])
    changed["spec"] = {**deployment["spec"], "template": template}
    return changed, "Normal", "DeploymentRollback", f'Rolled back deployment "{name}" to revision {revision}'


def _revision(deployment: KubeObject, owned: Sequence[KubeObject]) -> int:
    """Return the revision asked for; 0 means the one before the latest, and is returned when there is none."""
    if revision := int_annotation(deployment, plan.ROLLBACK_TO):
        return revision
    revisions = sorted(plan.revision_of(one) for one in owned)
    return revisions[-2] if len(revisions) > 1 else 0
