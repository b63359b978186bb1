"""The kinds of the group apps and replication controllers, aspect by aspect."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from batkube.api.groups.apps import columns, defaults, strategy, validation, warnings
from batkube.api.groups.core.pods.strategy import drop_from_template
from batkube.api.groups.kind import Kind
from batkube.api.groups.strategy import LABELS, ORPHANING, SPEC, STATUS, WORKLOAD, Path, Strategy

_TERMINATING: Path = ("status", "terminatingReplicas")
#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "controllerrevisions.apps": Kind(
        rules=validation.CONTROLLER_REVISION_RULES,
        cells=columns.controller_revision_cells,
    ),
    "daemonsets.apps": Kind(
        defaults={"v1": defaults.fill_daemon_set},
        strategy=WORKLOAD,
        prepare=strategy.create_daemon_set,
        prepare_update={"": strategy.update_daemon_set, "status": strategy.keep_template_number},
        rules=validation.DAEMON_SET_RULES,
        cells=columns.daemon_set_cells,
        warn=warnings.of_template,
        warn_update={"": warnings.of_changed_daemon_set},
    ),
    "deployments.apps": Kind(
        defaults={"v1": defaults.fill_deployment},
        strategy=Strategy(
            keeps={"": (STATUS,), "status": (SPEC, LABELS)},
            counts=(SPEC, ("metadata", "annotations")),
            numbered=True,
            disabled=(_TERMINATING,),
        ),
        prepare=drop_from_template,
        prepare_update={"": drop_from_template},
        rules=validation.DEPLOYMENT_RULES,
        cells=columns.deployment_cells,
        warn=warnings.of_named_template,
        warn_update={"": warnings.of_changed_template, "scale": warnings.of_changed_template},
    ),
    "replicasets.apps": Kind(
        defaults={"v1": defaults.fill_replica_set},
        strategy=msgspec.structs.replace(WORKLOAD, disabled=(_TERMINATING,)),
        prepare=drop_from_template,
        prepare_update={"": drop_from_template},
        rules=validation.REPLICA_SET_RULES,
        cells=columns.replica_set_cells,
        warn=warnings.of_named_template,
        warn_update={"": warnings.of_changed_template, "scale": warnings.of_changed_template},
    ),
    "replicationcontrollers": Kind(
        defaults={"v1": defaults.fill_replication_controller},
        strategy=ORPHANING,
        prepare=drop_from_template,
        prepare_update={"": drop_from_template},
        rules=validation.REPLICATION_CONTROLLER_RULES,
        cells=columns.replication_controller_cells,
        warn=warnings.of_named_template,
        warn_update={"": warnings.of_changed_controller, "scale": warnings.of_changed_controller},
    ),
    "statefulsets.apps": Kind(
        defaults={"v1": defaults.fill_stateful_set},
        strategy=msgspec.structs.replace(
            WORKLOAD, disabled=(("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"),)
        ),
        prepare=drop_from_template,
        prepare_update={"": drop_from_template},
        rules=validation.STATEFUL_SET_RULES,
        cells=columns.stateful_set_cells,
        warn=warnings.of_stateful_set,
        warn_update={"": warnings.of_changed_stateful_set, "scale": warnings.of_changed_stateful_set},
    ),
}
