"""Defaults: what the server fills into an object that a client left open.

They come first of all that happens to an object, so that everything after sees whole objects. There is one function
for each kind that has any; the table below names them. What Kubernetes' conversions between the served and the internal
type tie together (`podIP` and `podIPs`) is done here too, because every object passes both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from batkube.api.groups import defaults as groups
from batkube.api.groups.apps import defaults as workloads
from batkube.api.groups.autoscaling import defaults as autoscaling
from batkube.api.groups.core import defaults as core
from batkube.api.groups.core.pods.defaults import fill_pod
from batkube.cluster.kinds import Resource

_DEFAULTS: Mapping[tuple[str, str, str], Callable[[dict[str, Any]], None]] = {
    ("", "v1", "endpoints"): core.endpoints,
    ("", "v1", "limitranges"): core.limit_range,
    ("", "v1", "namespaces"): core.namespace,
    ("", "v1", "nodes"): core.node,
    ("", "v1", "persistentvolumeclaims"): core.persistent_volume_claim,
    ("", "v1", "persistentvolumes"): core.persistent_volume,
    ("", "v1", "pods"): fill_pod,
    ("", "v1", "podtemplates"): core.pod_template,
    ("", "v1", "replicationcontrollers"): core.replication_controller,
    ("", "v1", "resourcequotas"): core.resource_quota,
    ("", "v1", "secrets"): core.secret,
    ("", "v1", "services"): core.service,
    ("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"): groups.mutating_webhooks,
    ("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"): groups.admission_policy,
    ("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings"): groups.admission_policy_binding,
    ("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"): groups.validating_webhooks,
    ("apiregistration.k8s.io", "v1", "apiservices"): groups.api_service,
    ("apps", "v1", "daemonsets"): workloads.daemon_set,
    ("apps", "v1", "deployments"): workloads.deployment,
    ("apps", "v1", "replicasets"): workloads.replica_set,
    ("apps", "v1", "statefulsets"): workloads.stateful_set,
    ("autoscaling", "v1", "horizontalpodautoscalers"): autoscaling.autoscaler_v1,
    ("autoscaling", "v2", "horizontalpodautoscalers"): autoscaling.autoscaler_v2,
    ("batch", "v1", "cronjobs"): workloads.cron_job,
    ("batch", "v1", "jobs"): workloads.job,
    ("discovery.k8s.io", "v1", "endpointslices"): groups.endpoint_slice,
    ("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"): groups.flow_schema,
    ("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations"): groups.priority_level,
    ("networking.k8s.io", "v1", "ingressclasses"): groups.ingress_class,
    ("networking.k8s.io", "v1", "networkpolicies"): groups.network_policy,
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings"): groups.role_binding,
    ("rbac.authorization.k8s.io", "v1", "rolebindings"): groups.role_binding,
    ("resource.k8s.io", "v1", "resourceclaims"): groups.resource_claim,
    ("resource.k8s.io", "v1", "resourceclaimtemplates"): groups.resource_claim_template,
    ("scheduling.k8s.io", "v1", "priorityclasses"): groups.priority_class,
    ("storage.k8s.io", "v1", "csidrivers"): groups.csi_driver,
    ("storage.k8s.io", "v1", "storageclasses"): groups.storage_class,
    ("storage.k8s.io", "v1", "volumeattachments"): groups.volume_attachment,
}


def apply_defaults(resource: Resource, obj: dict[str, Any]) -> None:
    """Fill the defaults of its kind and version into `obj`, which is canonical (as `api.decoding` leaves it)."""
    fill = _DEFAULTS.get((resource.group, resource.version, resource.plural))
    if fill is not None:
        fill(obj)
