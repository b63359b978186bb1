"""The kinds of the group networking.k8s.io, aspect by aspect."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.core.services.warnings import of_load_balancer
from batkube.api.groups.kind import Kind, of_any_change
from batkube.api.groups.networking import columns, defaults, validation, warnings
from batkube.api.groups.strategy import APART, METADATA, SPEC, Strategy, counted

#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "ingressclasses.networking.k8s.io": Kind(
        defaults={"v1": defaults.fill_ingress_class},
        strategy=counted(SPEC),
        rules=validation.INGRESS_CLASS_RULES,
        cells=columns.ingress_class_cells,
    ),
    "ingresses.networking.k8s.io": Kind(
        strategy=counted(SPEC, keeps=APART),
        rules=validation.INGRESS_RULES,
        cells=columns.ingress_cells,
        warn=warnings.of_ingress,
        warn_update={"status": of_any_change(of_load_balancer)},
    ),
    "ipaddresses.networking.k8s.io": Kind(
        rules=validation.IPADDRESS_RULES,
        cells=columns.ip_address_cells,
    ),
    "networkpolicies.networking.k8s.io": Kind(
        defaults={"v1": defaults.fill_network_policy},
        strategy=counted(SPEC),
        rules=validation.NETWORK_POLICY_RULES,
        cells=columns.network_policy_cells,
        warn=warnings.of_network_policy,
        warn_update={"": of_any_change(warnings.of_network_policy)},
    ),
    "servicecidrs.networking.k8s.io": Kind(
        strategy=Strategy(keeps={"status": (SPEC, METADATA)}),
        rules=validation.SERVICE_CIDR_RULES,
        cells=columns.service_cidr_cells,
    ),
}
