"""Revisions get as many pods as their requests need: looked at every two seconds, and at once when one has to wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.kube.conditions import is_condition_true
from isvc.kube.objects import Key, Object, dig, labels_of, name_of, namespace_of
from isvc.kube.pods import replicas_of
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS
from isvc.local.gateway.routes.rules import Target
from isvc.local.knative.activator import Activator
from isvc.local.knative.decider import Decider, Pods
from isvc.local.knative.kinds import CONFIGURATION, CONFIGURATIONS, REVISIONS, ROUTES, deployment_name
from isvc.local.knative.resource_scaling import is_scaled_by_resources
from isvc.local.knative.settings import CONFIG_NAME, Scaling
from isvc.serving.environment import KNATIVE_NAMESPACE
from isvc.toolkit.cache import Reader
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch, spec_changed
from isvc.toolkit.reads import Read

TICK_SECONDS: Final = 2.0


def scaling_of(reader: Reader, revision: Object) -> Scaling:
    config = reader.get(CONFIG_MAPS, CONFIG_NAME, KNATIVE_NAMESPACE) or {}
    return Scaling.of(revision, config.get("data") or {})


def controller(context: Context, activator: Activator) -> Controller:
    def revisions_behind(route: Object) -> Iterable[Key]:
        targets = dig(route, "status", "traffic") or ()
        return [Key(namespace_of(route), each["revisionName"]) for each in targets]

    scalers = RevisionScalers(context, activator)
    watches = [
        Watch(REVISIONS, when=spec_changed),
        Watch(DEPLOYMENTS, to=OwnerOf(REVISIONS), when=spec_changed),
        Watch(ROUTES, to=revisions_behind),
    ]
    reads = [Read(CONFIG_MAPS), Read(CONFIGURATIONS)]
    made = Controller("knative-autoscaler", scalers.reconcile, watches, reads=reads, clock=context.clock)
    activator.wake = lambda key: made.queue.add(key)
    return made


class RevisionScalers:
    def __init__(self, context: Context, activator: Activator) -> None:
        self._context = context
        self._activator = activator
        self._deciders: dict[Key, Decider] = {}

    async def reconcile(self, key: Key) -> Result | None:
        cache = self._context.cache
        revision = self._context.find(REVISIONS, key)
        deployment = cache.get(DEPLOYMENTS, deployment_name(key.name), key.namespace)
        line = self._activator.line(Target(key))
        if revision is None:
            self._deciders.pop(key, None)
            return None
        if deployment is None or line is None or is_scaled_by_resources(revision):
            return None
        now = self._context.clock.monotonic()
        decider = self._deciders.setdefault(key, Decider(now))
        replicas, scaling = replicas_of(deployment), scaling_of(cache, revision)
        if not replicas and line.demand.under_way:
            line.demand.wake(now)
        wanted = decider.decide(
            scaling,
            line.demand,
            now,
            Pods(replicas, dig(deployment, "status", "readyReplicas") or 0),
            reachable=is_reachable(cache, revision),
            initialized=is_condition_true(revision, "Ready"),
        )
        if wanted != replicas:
            await self._context.patch(DEPLOYMENTS, deployment, {"spec": {"replicas": wanted}})
        return Result(requeue_after=TICK_SECONDS) if wanted or line.demand.under_way else None


def is_reachable(reader: Reader, revision: Object) -> bool:
    """Returns whether a Route leads to it, or may as soon as it is ready: the newest of its Configuration."""
    namespace, name = namespace_of(revision), name_of(revision)
    configuration = reader.get(CONFIGURATIONS, labels_of(revision).get(CONFIGURATION, ""), namespace)
    if dig(configuration, "status", "latestCreatedRevisionName") in (None, name):
        return True
    targets = (each for route in reader.list(ROUTES, namespace) for each in dig(route, "status", "traffic") or ())
    return any(each.get("revisionName") == name for each in targets)
