"""apps, batch, autoscaling and policy: what makes pods, and what decides how many of them there are."""

from __future__ import annotations

from typing import Final

from isvc.apiserver.builtin import conversion, prepare, strategies, warnings
from isvc.apiserver.builtin.kind import WORKLOAD_SCALE, Kind
from isvc.apiserver.builtin.validation import autoscaling
from isvc.apiserver.builtin.validation import workloads as rules
from isvc.apiserver.tables import workloads
from isvc.kube.resource import (
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    JOBS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)

APPS: Final = (
    Kind(
        resource=CONTROLLER_REVISIONS,
        columns=workloads.CONTROLLER_REVISIONS,
        check_update=rules.revision_update,
    ),
    Kind(
        resource=DAEMON_SETS,
        short_names=("ds",),
        categories=("all",),
        columns=workloads.DAEMON_SETS,
        status=True,
        generation=True,
        on_create=prepare.daemon_set,
        on_update=prepare.changed_daemon_set,
        check=rules.daemon_set,
        warn=warnings.workload("spec", "template"),
        check_update=rules.selector_unchanged,
    ),
    Kind(
        resource=DEPLOYMENTS,
        short_names=("deploy",),
        categories=("all",),
        columns=workloads.DEPLOYMENTS,
        status=True,
        scale=WORKLOAD_SCALE,
        generation=True,
        check=rules.deployment,
        warn=warnings.workload("spec", "template", named=True),
        check_update=rules.selector_unchanged,
        check_status=rules.deployment_status,
        strategy_class=strategies.Deployments,
    ),
    Kind(
        resource=REPLICA_SETS,
        short_names=("rs",),
        categories=("all",),
        columns=workloads.REPLICA_SETS,
        selectable=("status.replicas",),
        status=True,
        scale=WORKLOAD_SCALE,
        generation=True,
        check=rules.replica_set,
        warn=warnings.workload("spec", "template", named=True),
        check_update=rules.selector_unchanged,
    ),
    Kind(
        resource=STATEFUL_SETS,
        short_names=("sts",),
        categories=("all",),
        columns=workloads.STATEFUL_SETS,
        status=True,
        scale=WORKLOAD_SCALE,
        generation=True,
        check=rules.stateful_set,
        warn=warnings.workload("spec", "template"),
        check_update=rules.stateful_set_update,
    ),
)

BATCH: Final = (
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


def _autoscaler(version: str) -> Kind:
    return Kind(
        resource=HORIZONTAL_POD_AUTOSCALERS._replace(version=version),
        short_names=("hpa",),
        categories=("all",),
        columns=workloads.AUTOSCALERS,
        status=True,
        check=autoscaling.autoscaler,
        convert=conversion.autoscaler,
        storage=HORIZONTAL_POD_AUTOSCALERS,
    )


AUTOSCALING: Final = (
    _autoscaler("v2"),
    _autoscaler("v1"),
    Kind(
        resource=Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        short_names=("pdb",),
        columns=workloads.DISRUPTION_BUDGETS,
        status=True,
        generation=True,
        version_required=True,
        check=autoscaling.disruption_budget,
    ),
)
