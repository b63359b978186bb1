"""The kinds of the group networking.k8s.io."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.core.services.warnings import load_balancer_warnings
from batkube.api.groups.kind_model.kind import Kind, create_warnings_on_update
from batkube.api.groups.kind_model.strategy import METADATA, PROTECTED_FIELDS, SPEC, Strategy, with_generation
from batkube.api.groups.networking import columns, defaults, validation, warnings

#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "ingressclasses.networking.k8s.io": Kind(
        defaults={"v1": defaults.set_ingress_class_defaults},
        strategy=with_generation(SPEC),
        rules=validation.INGRESS_CLASS_RULES,
        cells=columns.ingress_class_cells,
    ),
    "ingresses.networking.k8s.io": Kind(
        strategy=with_generation(SPEC, keeps=PROTECTED_FIELDS),
        rules=validation.INGRESS_RULES,
        cells=columns.ingress_cells,
        warnings_on_create=warnings.ingress_warnings,
        warnings_on_update={"status": create_warnings_on_update(load_balancer_warnings)},
    ),
    "ipaddresses.networking.k8s.io": Kind(
        rules=validation.IPADDRESS_RULES,
        cells=columns.ip_address_cells,
    ),
    "networkpolicies.networking.k8s.io": Kind(
        defaults={"v1": defaults.set_network_policy_defaults},
        strategy=with_generation(SPEC),
        rules=validation.NETWORK_POLICY_RULES,
        cells=columns.network_policy_cells,
        warnings_on_create=warnings.network_policy_warnings,
        warnings_on_update={"": create_warnings_on_update(warnings.network_policy_warnings)},
    ),
    "servicecidrs.networking.k8s.io": Kind(
        strategy=Strategy(protected_fields={"status": (SPEC, METADATA)}),
        rules=validation.SERVICE_CIDR_RULES,
        cells=columns.service_cidr_cells,
    ),
}
