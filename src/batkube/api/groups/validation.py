"""Validation of the built-in kinds: what is wrong with an object, in the words and the order of the real server.

Each group of kinds has a module with a table of `Rules` by the name of the kind in the store; this one puts the tables
together and adds what the server checks of every object. Objects come decoded and with defaults; nothing here changes
them. Kubernetes: pkg/apis/*/validation and the Validate functions of pkg/registry/*/*/strategy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batkube.api.checks.field_errors import FieldError
from batkube.api.checks.metadata import check_common, check_metadata
from batkube.api.checks.names import path_segment, subdomain_name
from batkube.api.checks.problems import Problems
from batkube.api.checks.rules import Rules, metadata_only
from batkube.api.groups import certificates, events, flowcontrol, policy, rbac
from batkube.api.groups.admissionregistration import checks as admissionregistration
from batkube.api.groups.admissionregistration import policy_checks as admission_policies
from batkube.api.groups.apps import checks as apps
from batkube.api.groups.autoscaling import checks as autoscaling
from batkube.api.groups.batch import checks as batch
from batkube.api.groups.core import checks as core
from batkube.api.groups.core import endpoints, nodes, quotas
from batkube.api.groups.core.pods import checks as pods
from batkube.api.groups.core.services import checks as services
from batkube.api.groups.core.volumes import checks as persistent_volumes
from batkube.api.groups.core.volumes import claim_checks as claims
from batkube.api.groups.networking import checks as networking
from batkube.api.groups.resource import checks as resource
from batkube.api.groups.storage import checks as storage
from batkube.cluster.kinds import Resource

_RULES: dict[str, Rules] = {
    **admission_policies.RULES,
    **admissionregistration.RULES,
    **apps.RULES,
    **autoscaling.RULES,
    **batch.RULES,
    **certificates.RULES,
    **claims.RULES,
    **core.RULES,
    **endpoints.RULES,
    **events.RULES,
    **flowcontrol.RULES,
    **networking.RULES,
    **nodes.RULES,
    **persistent_volumes.RULES,
    **pods.RULES,
    **policy.RULES,
    **quotas.RULES,
    **rbac.RULES,
    **resource.RULES,
    **services.RULES,
    **storage.RULES,
}
#: For kinds without rules of their own.
_UNKNOWN = {namespaced: Rules(metadata_only(subdomain_name, namespaced)) for namespaced in (True, False)}


def _rules(resource: Resource) -> Rules:
    return _RULES.get(resource.group_resource) or _UNKNOWN[resource.namespaced]


def validate_create(resource: Resource, value: Mapping[str, Any]) -> list[FieldError]:
    """Return what is wrong with a new object."""
    problems = Problems()
    _rules(resource).create(value, problems)
    if not problems:
        # What a kind's own rules let pass must still fit into a URL (rest.BeforeCreate).
        check_metadata(value["metadata"], path_segment, resource.namespaced, problems)
    return problems


def validate_update(
    resource: Resource, new: Mapping[str, Any], old: Mapping[str, Any], subresource: str = ""
) -> list[FieldError]:
    """Return what is wrong with a changed object, or with how it changed; `subresource` may have rules of its own."""
    problems = Problems()
    check_common(new["metadata"], old["metadata"], resource.namespaced, problems)
    rules = _rules(resource)
    check = rules.status if subresource == "status" else rules.subresources.get(subresource, rules.update)
    check(new, old, problems)
    return problems


def validate_scale(scale: Mapping[str, Any]) -> list[FieldError]:
    """Return what is wrong with a Scale (Kubernetes: pkg/apis/autoscaling/validation, ValidateScale)."""
    problems = Problems()
    check_metadata(scale["metadata"], subdomain_name, True, problems)
    problems.not_negative("spec.replicas", scale.get("spec", {}).get("replicas", 0))
    return problems
