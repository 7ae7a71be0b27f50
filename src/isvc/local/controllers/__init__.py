"""The controllers of Kubernetes itself that serving needs, on the same toolkit as ours.

Deployment → ReplicaSet → Pod; Jobs, CronJobs, StatefulSets and DaemonSets; LeaderWorkerSets; Service → EndpointSlice
and Endpoints; claims that are folders; PodDisruptionBudgets. Names, conditions and words are those of
kube-controller-manager.
"""

from __future__ import annotations

from isvc.local.controllers import (
    claims,
    daemon_sets,
    disruption_budgets,
    endpoints,
    legacy_endpoints,
    replicasets,
    stateful_sets,
)
from isvc.local.controllers.deployments import controller as deployments
from isvc.local.controllers.jobs import controller as jobs
from isvc.local.controllers.jobs import cron
from isvc.local.controllers.leader_worker_sets import controller as leader_worker_sets
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller

_PARTS = (
    deployments,
    replicasets,
    stateful_sets,
    daemon_sets,
    jobs,
    cron,
    endpoints,
    legacy_endpoints,
    claims,
    leader_worker_sets,
    disruption_budgets,
)


def controllers(context: Context) -> list[Controller]:
    return [part.controller(context) for part in _PARTS]
