"""Pods and pod templates, aspect by aspect."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.core.pods import columns, defaults, strategy, validation, warnings
from batkube.api.groups.kind import Kind, of_any_change
from batkube.api.groups.strategy import SPEC, STATUS, Strategy, counted

#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "pods": Kind(
        defaults={"v1": defaults.fill_pod},
        strategy=Strategy(
            keeps={"": (STATUS,), "status": (SPEC, ("metadata", "ownerReferences"))}, counts=(SPEC,), numbered=True
        ),
        prepare=strategy.create_pod,
        prepare_update={
            "": strategy.update_pod,
            "ephemeralcontainers": strategy.update_ephemeral_containers,
            "resize": strategy.update_resize,
            "status": strategy.update_pod_status,
        },
        rules=validation.POD_RULES,
        cells=columns.pod_cells,
        row_conditions=columns.row_conditions,
        warn=warnings.of_pod,
        warn_update={"status": of_any_change(warnings.of_pod_status)},
    ),
    "podtemplates": Kind(
        defaults={"v1": defaults.fill_pod_template},
        strategy=counted(("template",)),
        prepare=strategy.drop_from_pod_template,
        prepare_update={"": strategy.drop_from_pod_template},
        rules=validation.POD_TEMPLATE_RULES,
        cells=columns.pod_template_cells,
        warn=warnings.of_pod_template,
        warn_update={"": warnings.of_changed_pod_template},
    ),
}
