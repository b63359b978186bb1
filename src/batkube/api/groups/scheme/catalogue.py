"""All built-in kinds with special behaviour, from the tables of the groups."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups import (
    apiextensions,
    apiregistration,
    certificates,
    coordination,
    discovery,
    events,
    flowcontrol,
    node,
    policy,
    rbac,
    scheduling,
    storage_versions,
)
from batkube.api.groups.admissionregistration import kinds as admissionregistration
from batkube.api.groups.apps import kinds as apps
from batkube.api.groups.autoscaling import kinds as autoscaling
from batkube.api.groups.batch import kinds as batch
from batkube.api.groups.core import (
    component_statuses,
    config_maps,
    endpoints,
    namespaces,
    nodes,
    quotas,
    secrets,
    service_accounts,
)
from batkube.api.groups.core.pods import kinds as pods
from batkube.api.groups.core.services import kinds as services
from batkube.api.groups.core.volumes import kinds as volumes
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.networking import kinds as networking
from batkube.api.groups.resource import kinds as resource
from batkube.api.groups.storage import kinds as storage

#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    **admissionregistration.KINDS,
    **apiextensions.KINDS,
    **apiregistration.KINDS,
    **apps.KINDS,
    **autoscaling.KINDS,
    **batch.KINDS,
    **certificates.KINDS,
    **component_statuses.KINDS,
    **config_maps.KINDS,
    **coordination.KINDS,
    **discovery.KINDS,
    **endpoints.KINDS,
    **events.KINDS,
    **flowcontrol.KINDS,
    **namespaces.KINDS,
    **networking.KINDS,
    **node.KINDS,
    **nodes.KINDS,
    **pods.KINDS,
    **policy.KINDS,
    **quotas.KINDS,
    **rbac.KINDS,
    **resource.KINDS,
    **scheduling.KINDS,
    **secrets.KINDS,
    **service_accounts.KINDS,
    **services.KINDS,
    **storage.KINDS,
    **storage_versions.KINDS,
    **volumes.KINDS,
}
_DEFAULT_KIND = Kind()


def kind_of(storage: str) -> Kind:
    """Return the special behaviour of a kind by its storage name."""
    return KINDS.get(storage, _DEFAULT_KIND)
