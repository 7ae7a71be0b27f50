"""batch: Jobs and CronJobs."""

from __future__ import annotations

from typing import Final

from isvc.apiserver.builtin import prepare, warnings
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.validation import workloads as rules
from isvc.apiserver.tables import workloads
from isvc.kube.resource import CRON_JOBS, JOBS

KINDS: Final = (
    Kind(
        resource=CRON_JOBS,
        short_names=("cj",),
        categories=("all",),
        columns=workloads.CRON_JOBS,
        status=True,
        generation=True,
        check=rules.cron_job,
        warn=warnings.workload("spec", "jobTemplate", "spec", "template", named=True),
    ),
    Kind(
        resource=JOBS,
        categories=("all",),
        columns=workloads.JOBS,
        selectable=("status.successful",),
        status=True,
        generation=True,
        # Jobs are older than garbage collection: who deletes one without a word about its pods keeps them.
        propagation="Orphan",
        on_create=prepare.job,
        check=rules.job,
        warn=warnings.workload("spec", "template", named=True),
        check_update=rules.job_update,
    ),
)
