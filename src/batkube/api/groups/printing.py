"""Which function prints which kind.

Kinds that are not listed, and have no columns of their own, get what the default of apiserver/pkg/registry/rest prints:
their name and when they were created.
"""

from __future__ import annotations

import importlib.resources
from typing import Any

import msgspec

from batkube.api.groups import access_columns as access
from batkube.api.groups.apps import columns as workloads
from batkube.api.groups.core import columns as core
from batkube.api.groups.core.pods import columns as pods
from batkube.api.groups.networking import columns as networking
from batkube.api.groups.storage import columns as storage
from batkube.api.printing.ages import age
from batkube.api.printing.printers import Cells, Column, Printer, column
from batkube.cluster.store import KubeObject
from batkube.kernel.instants import Instant


class _Derived(msgspec.Struct):
    """The file `columns.json`: name, type, format, priority and description; `@key` stands for a description."""

    descriptions: dict[str, str]
    columns: dict[str, list[tuple[str, str, str, int, str]]]

    def column(self, name: str, type_: str, form: str, priority: int, description: str) -> Column:
        text = self.descriptions[description[1:]] if description.startswith("@") else description
        return column(name, type_, form, priority, text)


_DERIVED = msgspec.json.decode(
    importlib.resources.files("batkube.api.printing").joinpath("columns.json").read_bytes(), type=_Derived
)
#: The column that every kind begins with but events.
NAME_COLUMN = _DERIVED.column("Name", "string", "name", 0, "@metav1.ObjectMeta.name")
#: What documents the time at which an object was created, in any column that tells it.
CREATION_DESCRIPTION = _DERIVED.descriptions["metav1.ObjectMeta.creationTimestamp"]


def _name_and_age(value: KubeObject, now: Instant) -> list[Any]:
    return [value["metadata"].get("name", ""), age(value, now)]


def _name_and_creation(value: KubeObject, now: Instant) -> list[Any]:
    metadata = value["metadata"]
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z"]


_CELLS: dict[str, Cells] = {
    "certificatesigningrequests.certificates.k8s.io": access.certificate_request_cells,
    "clusterrolebindings.rbac.authorization.k8s.io": access.role_binding_cells,
    "clustertrustbundles.certificates.k8s.io": access.trust_bundle_cells,
    "componentstatuses": core.component_status_cells,
    "configmaps": core.config_map_cells,
    "controllerrevisions.apps": workloads.controller_revision_cells,
    "cronjobs.batch": workloads.cron_job_cells,
    "csidrivers.storage.k8s.io": storage.csi_driver_cells,
    "csinodes.storage.k8s.io": storage.csi_node_cells,
    "daemonsets.apps": workloads.daemon_set_cells,
    "deployments.apps": workloads.deployment_cells,
    "deviceclasses.resource.k8s.io": _name_and_age,
    "devicetaintrules.resource.k8s.io": storage.device_taint_cells,
    "endpoints": networking.endpoints_cells,
    "endpointslices.discovery.k8s.io": networking.endpoint_slice_cells,
    "events": core.event_cells,
    "events.events.k8s.io": core.event_cells,
    "flowschemas.flowcontrol.apiserver.k8s.io": access.flow_schema_cells,
    "horizontalpodautoscalers.autoscaling": workloads.autoscaler_cells,
    "ingressclasses.networking.k8s.io": networking.ingress_class_cells,
    "ingresses.networking.k8s.io": networking.ingress_cells,
    "ipaddresses.networking.k8s.io": networking.ip_address_cells,
    "jobs.batch": workloads.job_cells,
    "leasecandidates.coordination.k8s.io": core.lease_candidate_cells,
    "leases.coordination.k8s.io": core.lease_cells,
    "mutatingadmissionpolicies.admissionregistration.k8s.io": access.mutating_policy_cells,
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": access.policy_binding_cells,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": access.webhook_cells,
    "namespaces": core.namespace_cells,
    "networkpolicies.networking.k8s.io": networking.network_policy_cells,
    "nodes": core.node_cells,
    "persistentvolumeclaims": storage.persistent_volume_claim_cells,
    "persistentvolumes": storage.persistent_volume_cells,
    "podcertificaterequests.certificates.k8s.io": access.pod_certificate_request_cells,
    "poddisruptionbudgets.policy": workloads.disruption_budget_cells,
    "pods": pods.pod_cells,
    "podtemplates": pods.pod_template_cells,
    "priorityclasses.scheduling.k8s.io": core.priority_class_cells,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": access.priority_level_cells,
    "replicasets.apps": workloads.replica_set_cells,
    "replicationcontrollers": workloads.replication_controller_cells,
    "resourceclaims.resource.k8s.io": storage.resource_claim_cells,
    "resourceclaimtemplates.resource.k8s.io": _name_and_age,
    "resourcequotas": core.resource_quota_cells,
    "resourceslices.resource.k8s.io": storage.resource_slice_cells,
    "rolebindings.rbac.authorization.k8s.io": access.role_binding_cells,
    "runtimeclasses.node.k8s.io": core.runtime_class_cells,
    "scales.autoscaling": workloads.scale_cells,
    "secrets": core.secret_cells,
    "serviceaccounts": core.service_account_cells,
    "servicecidrs.networking.k8s.io": networking.service_cidr_cells,
    "services": networking.service_cells,
    "statefulsets.apps": workloads.stateful_set_cells,
    "storageclasses.storage.k8s.io": storage.storage_class_cells,
    "storageversionmigrations.storagemigration.k8s.io": storage.storage_version_migration_cells,
    "storageversions.internal.apiserver.k8s.io": storage.storage_version_cells,
    "validatingadmissionpolicies.admissionregistration.k8s.io": access.validating_policy_cells,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": access.policy_binding_cells,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": access.webhook_cells,
    "volumeattachments.storage.k8s.io": storage.volume_attachment_cells,
    "volumeattributesclasses.storage.k8s.io": storage.volume_attributes_class_cells,
}
_CONDITIONS = {"pods": pods.row_conditions}
_ORDERS = {"flowschemas.flowcontrol.apiserver.k8s.io": access.flow_schema_order}

#: How each built-in kind is printed, by its name in the store; a Scale as `scales.autoscaling`.
PRINTERS = {
    storage_name: Printer(
        [_DERIVED.column(*definition) for definition in _DERIVED.columns[storage_name]],
        cells,
        _CONDITIONS.get(storage_name),
        _ORDERS.get(storage_name),
    )
    for storage_name, cells in _CELLS.items()
}
#: How the other kinds are printed, such as LimitRanges, Roles and CustomResourceDefinitions.
DEFAULT_PRINTER = Printer(
    [NAME_COLUMN, column("Created At", "date", "", 0, CREATION_DESCRIPTION)], _name_and_creation, no_rows=None
)
