"""The kinds of the group apps, and ReplicationControllers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from batkube.api.groups.apps import columns, defaults, strategy, validation, warnings
from batkube.api.groups.core.pods.strategy import prepare_workload_template
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import LABELS, ORPHANING_WORKLOAD, SPEC, STATUS, WORKLOAD, Path, Strategy

_TERMINATING: Path = ("status", "terminatingReplicas")
#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "controllerrevisions.apps": Kind(
        rules=validation.CONTROLLER_REVISION_RULES,
        cells=columns.controller_revision_cells,
    ),
    "daemonsets.apps": Kind(
        defaults={"v1": defaults.set_daemon_set_defaults},
        strategy=WORKLOAD,
        prepare_create=strategy.prepare_daemon_set_create,
        prepare_update={"": strategy.prepare_daemon_set_update, "status": strategy.preserve_template_generation},
        rules=validation.DAEMON_SET_RULES,
        cells=columns.daemon_set_cells,
        warnings_on_create=warnings.template_warnings,
        warnings_on_update={"": warnings.daemon_set_update_warnings},
    ),
    "deployments.apps": Kind(
        defaults={"v1": defaults.set_deployment_defaults},
        strategy=Strategy(
            protected_fields={"": (STATUS,), "status": (SPEC, LABELS)},
            generation_fields=(SPEC, ("metadata", "annotations")),
            has_generation=True,
            disabled_fields=(_TERMINATING,),
        ),
        prepare_create=prepare_workload_template,
        prepare_update={"": prepare_workload_template},
        rules=validation.DEPLOYMENT_RULES,
        cells=columns.deployment_cells,
        warnings_on_create=warnings.named_template_warnings,
        warnings_on_update={"": warnings.template_update_warnings, "scale": warnings.template_update_warnings},
    ),
    "replicasets.apps": Kind(
        defaults={"v1": defaults.set_replica_set_defaults},
        strategy=msgspec.structs.replace(WORKLOAD, disabled_fields=(_TERMINATING,)),
        prepare_create=prepare_workload_template,
        prepare_update={"": prepare_workload_template},
        rules=validation.REPLICA_SET_RULES,
        cells=columns.replica_set_cells,
        warnings_on_create=warnings.named_template_warnings,
        warnings_on_update={"": warnings.template_update_warnings, "scale": warnings.template_update_warnings},
    ),
    "replicationcontrollers": Kind(
        defaults={"v1": defaults.set_replication_controller_defaults},
        strategy=ORPHANING_WORKLOAD,
        prepare_create=prepare_workload_template,
        prepare_update={"": prepare_workload_template},
        rules=validation.REPLICATION_CONTROLLER_RULES,
        cells=columns.replication_controller_cells,
        warnings_on_create=warnings.named_template_warnings,
        warnings_on_update={
            "": warnings.replication_controller_update_warnings,
            "scale": warnings.replication_controller_update_warnings,
        },
    ),
    "statefulsets.apps": Kind(
        defaults={"v1": defaults.set_stateful_set_defaults},
        strategy=msgspec.structs.replace(
            WORKLOAD, disabled_fields=(("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"),)
        ),
        prepare_create=prepare_workload_template,
        prepare_update={"": prepare_workload_template},
        rules=validation.STATEFUL_SET_RULES,
        cells=columns.stateful_set_cells,
        warnings_on_create=warnings.stateful_set_warnings,
        warnings_on_update={"": warnings.stateful_set_update_warnings, "scale": warnings.stateful_set_update_warnings},
    ),
}
