"""Jobs and cron jobs, aspect by aspect."""

from __future__ import annotations

from collections.abc import Mapping

from batkube.api.groups.batch import columns, defaults, strategy, validation, warnings
from batkube.api.groups.core.pods.strategy import drop_from_template
from batkube.api.groups.kind import Kind
from batkube.api.groups.strategy import ORPHANING, WORKLOAD

#: What is special about each kind, by its name in the store.
KINDS: Mapping[str, Kind] = {
    "cronjobs.batch": Kind(
        defaults={"v1": defaults.fill_cron_job},
        strategy=WORKLOAD,
        prepare=strategy.drop_from_cron_job,
        prepare_update={"": strategy.drop_from_cron_job},
        rules=validation.CRON_JOB_RULES,
        cells=columns.cron_job_cells,
        warn=warnings.of_cron_job,
        warn_update={"": warnings.of_changed_cron_job},
    ),
    "jobs.batch": Kind(
        defaults={"v1": defaults.fill_job},
        strategy=ORPHANING,
        prepare=strategy.create_job,
        prepare_update={"": drop_from_template, "status": strategy.label_as_template},
        rules=validation.JOB_RULES,
        cells=columns.job_cells,
        warn=warnings.of_job,
        warn_update={"": warnings.of_changed_job},
    ),
}
