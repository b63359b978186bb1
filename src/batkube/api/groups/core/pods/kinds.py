"""Pods and PodTemplates."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.core.pods import columns, defaults, strategy, warnings
from batkube.api.groups.core.pods.validation import pods
from batkube.api.groups.kind_model.kind import Kind, create_warnings_on_update
from batkube.api.groups.kind_model.strategy import SPEC, STATUS, Strategy, with_generation

#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "pods": Kind(
        defaults={"v1": defaults.set_pod_defaults},
        strategy=Strategy(
            protected_fields={"": (STATUS,), "status": (SPEC, ("metadata", "ownerReferences"))},
            generation_fields=(SPEC,),
            has_generation=True,
        ),
        prepare_create=strategy.prepare_pod_create,
        prepare_update={
            "": strategy.prepare_pod_update,
            "ephemeralcontainers": strategy.prepare_ephemeral_containers_update,
            "resize": strategy.prepare_resize_update,
            "status": strategy.prepare_pod_status_update,
        },
        rules=pods.POD_RULES,
        cells=columns.pod_cells,
        row_conditions=columns.pod_row_conditions,
        warnings_on_create=warnings.pod_warnings,
        warnings_on_update={"status": create_warnings_on_update(warnings.pod_status_warnings)},
    ),
    "podtemplates": Kind(
        defaults={"v1": defaults.set_pod_template_defaults},
        strategy=with_generation(("template",)),
        prepare_create=strategy.prepare_pod_template,
        prepare_update={"": strategy.prepare_pod_template},
        rules=pods.POD_TEMPLATE_RULES,
        cells=columns.pod_template_cells,
        warnings_on_create=warnings.pod_template_warnings,
        warnings_on_update={"": warnings.pod_template_update_warnings},
    ),
}
