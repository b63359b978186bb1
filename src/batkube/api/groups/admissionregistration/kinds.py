"""The kinds of the group admissionregistration.k8s.io."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.admissionregistration import (
    columns,
    defaults,
    mutating_policy_validation,
    policy_validation,
    validation,
)
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import PROTECTED_FIELDS_AND_METADATA, SPEC, with_generation

#: The versions in which mutating policies can be served.
_OFF_BY_DEFAULT = ("v1alpha1", "v1beta1")

#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "mutatingadmissionpolicies.admissionregistration.k8s.io": Kind(
        defaults=dict.fromkeys(_OFF_BY_DEFAULT, defaults.set_admission_policy_defaults),
        strategy=with_generation(SPEC, unconditional=False),
        rules=mutating_policy_validation.MUTATING_ADMISSION_POLICY_RULES,
        cells=columns.mutating_policy_cells,
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": Kind(
        defaults=dict.fromkeys(_OFF_BY_DEFAULT, defaults.set_admission_policy_binding_defaults),
        strategy=with_generation(SPEC, unconditional=False),
        rules=mutating_policy_validation.MUTATING_ADMISSION_POLICY_BINDING_RULES,
        cells=columns.policy_binding_cells,
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": Kind(
        defaults={"v1": defaults.set_mutating_webhook_defaults},
        strategy=with_generation(("webhooks",), unconditional=False),
        rules=validation.WEBHOOK_RULES,
        cells=columns.webhook_cells,
    ),
    "validatingadmissionpolicies.admissionregistration.k8s.io": Kind(
        defaults={"v1": defaults.set_admission_policy_defaults},
        strategy=with_generation(SPEC, keeps=PROTECTED_FIELDS_AND_METADATA, unconditional=False),
        rules=policy_validation.VALIDATING_ADMISSION_POLICY_RULES,
        cells=columns.validating_policy_cells,
    ),
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": Kind(
        defaults={"v1": defaults.set_admission_policy_binding_defaults},
        strategy=with_generation(SPEC, unconditional=False),
        rules=policy_validation.VALIDATING_ADMISSION_POLICY_BINDING_RULES,
        cells=columns.policy_binding_cells,
    ),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": Kind(
        defaults={"v1": defaults.set_validating_webhook_defaults},
        strategy=with_generation(("webhooks",), unconditional=False),
        rules=validation.WEBHOOK_RULES,
        cells=columns.webhook_cells,
    ),
}
