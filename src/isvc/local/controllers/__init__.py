"""The controllers of Kubernetes itself that serving needs, on the same toolkit as ours.

Deployment → ReplicaSet → Pod, Service → EndpointSlice, HorizontalPodAutoscaler at its bounds, claims that are folders,
and a default ServiceAccount for every namespace. Names, conditions and words are those of kube-controller-manager.
"""

from __future__ import annotations

from isvc.local.controllers import accounts, autoscalers, claims, deployments, endpoints, replicasets
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock
from isvc.toolkit.controller import Controller
from isvc.toolkit.recorder import Recorder


def controllers(client: Client, cache: Cache, recorder: Recorder, clock: Clock) -> list[Controller]:
    return [
        deployments.controller(client, cache, recorder, clock),
        replicasets.controller(client, cache, recorder, clock),
        endpoints.controller(client, cache),
        autoscalers.controller(client, cache, clock),
        accounts.controller(client, cache),
        claims.controller(client, cache),
    ]
