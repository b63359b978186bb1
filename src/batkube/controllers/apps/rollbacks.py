"""Rollback of Deployments by the deprecated annotation of extensions/v1beta1.

`kubectl rollout undo` patches the template itself; this supports clients that still set the annotation (Kubernetes:
pkg/controller/deployment/rollback.go).
"""

from __future__ import annotations

from collections.abc import Sequence

from batkube.cluster.event_recorder import EventType
from batkube.cluster.object_meta import annotations_of, int_annotation, with_metadata
from batkube.cluster.store import KubeObject
from batkube.controllers.apps import rollout_plan as plan


def roll_back(deployment: KubeObject, owned: Sequence[KubeObject]) -> tuple[KubeObject, EventType, str, str]:
    """Return the deployment after the requested rollback, and type, reason and message of the event."""
    name = deployment["metadata"]["name"]
    revision = _revision(deployment, owned)
    target = next(
        (replica_set for replica_set in owned if revision and plan.revision_of(replica_set) == revision), None
    )
    annotations = {key: text for key, text in annotations_of(deployment).items() if key != plan.ROLLBACK_TO}
    unchanged = with_metadata(deployment, annotations=annotations)
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
    """Return the requested revision. 0 requests the one before the latest, and is returned if there is none."""
    if revision := int_annotation(deployment, plan.ROLLBACK_TO):
        return revision
    revisions = sorted(plan.revision_of(replica_set) for replica_set in owned)
    return revisions[-2] if len(revisions) > 1 else 0
