"""The controllers of Kubernetes itself that serving needs, on the same toolkit as ours.

Deployment → ReplicaSet → Pod, Service → EndpointSlice, claims that are folders, and a default ServiceAccount for every
namespace. Names, conditions and words are those of kube-controller-manager.
"""

from __future__ import annotations

from isvc.local.controllers import (
    accounts,
    claims,
    deployments,
    endpoints,
    leader_worker_sets,
    replicasets,
)
from isvc.local.controllers.context import Context
from isvc.toolkit.controller import Controller

_PARTS = (deployments, replicasets, endpoints, accounts, claims, leader_worker_sets)


def controllers(context: Context) -> list[Controller]:
    return [part.controller(context) for part in _PARTS]
