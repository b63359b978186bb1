"""The kinds of the group batch."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.batch import columns, defaults, strategy, validation, warnings
from batkube.api.groups.core.pods.strategy import prepare_workload_template
from batkube.api.groups.kind_model.kind import Kind
from batkube.api.groups.kind_model.strategy import ORPHANING_WORKLOAD, WORKLOAD

#: The kinds with special behaviour, by storage name.
KINDS: Mapping[str, Kind] = {
    "cronjobs.batch": Kind(
        defaults={"v1": defaults.set_cron_job_defaults},
        strategy=WORKLOAD,
        prepare_create=strategy.prepare_cron_job,
        prepare_update={"": strategy.prepare_cron_job},
        rules=validation.CRON_JOB_RULES,
        cells=columns.cron_job_cells,
        warnings_on_create=warnings.cron_job_warnings,
        warnings_on_update={"": warnings.cron_job_update_warnings},
    ),
    "jobs.batch": Kind(
        defaults={"v1": defaults.set_job_defaults},
        strategy=ORPHANING_WORKLOAD,
        prepare_create=strategy.prepare_job_create,
        prepare_update={"": prepare_workload_template, "status": strategy.copy_template_labels},
        rules=validation.JOB_RULES,
        cells=columns.job_cells,
        warnings_on_create=warnings.job_warnings,
        warnings_on_update={"": warnings.job_update_warnings},
    ),
}
