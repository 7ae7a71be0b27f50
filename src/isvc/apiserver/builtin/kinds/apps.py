"""apps: Deployments, ReplicaSets, StatefulSets, DaemonSets and ControllerRevisions."""

from __future__ import annotations

from typing import Final

from isvc.apiserver.builtin import prepare, strategies, warnings
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.validation import workloads as rules
from isvc.apiserver.tables import workloads
from isvc.kube.resource import CONTROLLER_REVISIONS, DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS

KINDS: Final = (
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
        scale=True,
        generation=True,
        check=rules.deployment,
        warn=warnings.workload("spec", "template", named=True),
        check_update=rules.selector_unchanged,
        check_status=rules.deployment_status,
        strategy=strategies.Deployments,
    ),
    Kind(
        resource=REPLICA_SETS,
        short_names=("rs",),
        categories=("all",),
        columns=workloads.REPLICA_SETS,
        selectable=("status.replicas",),
        status=True,
        scale=True,
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
        scale=True,
        generation=True,
        check=rules.stateful_set,
        warn=warnings.workload("spec", "template"),
        check_update=rules.stateful_set_update,
    ),
)
