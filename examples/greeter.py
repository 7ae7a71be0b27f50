"""A controller in a few lines: each ConfigMap labelled `example: greeting` gets a Deployment and a Service.

KUBECONFIG=... python examples/greeter.py
"""

from __future__ import annotations

import asyncio
import logging

from isvc.engine.apply import Engine
from isvc.engine.plan import Child, Part, Plan, Retire, Want
from isvc.engine.policies import WHOLE_BUT_REPLICAS
from isvc.kube.objects import Key, Object, name_of, namespace_of
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SERVICES
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.controller import Controller, Watch
from isvc.toolkit.manager import Manager
from isvc.toolkit.reads import Read

log = logging.getLogger("greeter")


def plan(owner: Object) -> Plan:
    """The whole of what this controller knows: an owner in, the wanted objects out."""
    kinds = frozenset({DEPLOYMENTS, SERVICES})
    if owner.get("data", {}).get("state") == "off":
        return Plan((Part("greeter", Retire("switched off"), kinds),))
    labels = {"greeter": name_of(owner)}
    metadata = {"name": name_of(owner), "namespace": namespace_of(owner), "labels": labels}
    container = {"name": "greeter", "image": "greeter:1", "args": [owner.get("data", {}).get("greeting", "hello")]}
    container["ports"] = [{"containerPort": 8080}]
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pods}
    service = {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}
    children = (
        Child(DEPLOYMENTS, _object("apps/v1", "Deployment", metadata, deployment), policy=WHOLE_BUT_REPLICAS),
        Child(SERVICES, _object("v1", "Service", metadata, service)),
    )
    return Plan((Part("greeter", Want(children), kinds),))


def _object(api_version: str, kind: str, metadata: Object, spec: Object) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


class Greeter:
    """Observe, plan, apply, and keep what went wrong."""

    def __init__(self, client: Client, namespace: str = "") -> None:
        self.cache = Cache(client)
        self.problems: dict[Key, str] = {}
        self._engine = Engine(client, self.cache)
        # Children carry their owner's name, so that the change of one, and of a namesake, leads to the owner's key.
        watches = [Watch(kind) for kind in (CONFIG_MAPS, DEPLOYMENTS, SERVICES)]
        reads = [Read(CONFIG_MAPS, namespace=namespace, labels="example=greeting")]
        self.controller = Controller("greeter", self.reconcile, watches, workers=8, reads=reads)
        self.manager = Manager(client, self.cache, controllers=[self.controller])

    async def reconcile(self, key: Key) -> None:
        owner = self.cache.get(CONFIG_MAPS, key.name, key.namespace)
        if owner is None:
            return
        outcome = await self._engine.apply(owner, plan(owner))
        self.problems.pop(key, None)
        if outcome.refusal:
            self.problems[key] = outcome.refusal.result.message
            log.warning("%s: %s", key, self.problems[key])


async def main() -> None:
    async with Client.connect(kubeconfig.load()) as client:
        await Greeter(client).manager.run()


if __name__ == "__main__":
    asyncio.run(main())
