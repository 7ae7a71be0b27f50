"""What triggers a reconcile of a node's models, and how its controller is built."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from isvc.api.codec import DecodeError
from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, LOCAL_MODEL_NODE_GROUPS, LOCAL_MODEL_NODES
from isvc.controllers.localmodelnode.chores import chores_for
from isvc.controllers.localmodelnode.disk import Disk, Stock
from isvc.controllers.localmodelnode.downloads import Download, downloads_of, keys_in_use
from isvc.controllers.localmodelnode.job import label_value
from isvc.controllers.localmodelnode.kind import make_kind
from isvc.engine.reconciler import Reconciler
from isvc.kube.objects import Key, Object, is_being_deleted, namespace_of, uid_of
from isvc.kube.resource import CONFIG_MAPS, JOBS, PODS
from isvc.kube.timestamps import timestamp
from isvc.serving.config.configmap import CONFIG_MAP
from isvc.serving.config.current import settings_changed
from isvc.serving.environment import Environment
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch, spec_changed
from isvc.toolkit.reads import Read

log = logging.getLogger(__name__)


class NodeKeeper:
    """Sees to the disk of a node, then reconciles its list of models with what is there."""

    def __init__(self, context: Context, environment: Environment) -> None:
        self._context, self._place = context, environment.node
        self._disk, self._stock = Disk(Path(environment.node.folder)), Stock()
        self._reconciler = Reconciler(make_kind(context.cache, environment, lambda: self._stock), context)

    async def reconcile(self, key: Key) -> Result | None:
        if key.name != self._place.name:
            return None
        raw = self._context.cache.get(LOCAL_MODEL_NODES, key.name)
        if raw is not None and not is_being_deleted(raw):
            pods = self._context.cache.list(PODS, self._place.job_namespace)
            jobs = self._context.cache.by_index(JOBS, OWNER, uid_of(raw))
            self._stock = await asyncio.to_thread(self._keep_house, raw, jobs, pods)
        return await self._reconciler.reconcile(key)

    def _keep_house(self, raw: Object, jobs: list[Object], pods: list[Object]) -> Stock:
        """Does what is to be done on the disk; returns what is there then."""
        try:
            with self._disk.lock():
                return self._do_chores(raw, downloads_of(jobs, pods), keys_in_use(pods))
        except OSError as error:
            log.warning("%s: %s", self._disk.root, error)
            problem = f"{error.filename or self._disk.root}: {error.strerror or error}"
            return replace(self._disk.take_stock(), problem=problem)

    def _do_chores(self, raw: Object, downloads: Collection[Download], in_use: Collection[str]) -> Stock:
        stock, now = self._disk.take_stock(), timestamp(self._context.clock.now())
        if stock.problem:
            return stock
        try:
            chores = chores_for(raw, stock, downloads, in_use)
        except DecodeError:
            return stock  # the reconciler reports it
        chores.leave_alone(self._disk.share(label_value(self._place.name), chores.sources))
        chores.do(self._disk, now)
        return replace(self._disk.take_stock(), ended=frozenset(each.name for each in downloads if each.succeeded))


def controller(context: Context, environment: Environment) -> Controller:
    node = Key("", environment.node.name)

    def this_node(_: Object) -> Iterable[Key]:
        return (node,)

    def of_a_job(before: Object | None, after: Object | None) -> bool:
        """A cache that others share has all pods."""
        return namespace_of(after or before or {}) == environment.node.job_namespace

    watches = (
        Watch(LOCAL_MODEL_NODES),
        Watch(JOBS, to=OwnerOf(LOCAL_MODEL_NODES)),
        Watch(PODS, to=this_node, when=of_a_job),
        Watch(LOCAL_MODEL_NODE_GROUPS, to=this_node, when=spec_changed),
        Watch(CLUSTER_STORAGE_CONTAINERS, to=this_node, when=spec_changed),
        Watch(CONFIG_MAPS, to=this_node, when=partial(settings_changed, environment.system_namespace)),
    )
    return Controller(
        "localmodelnode",
        NodeKeeper(context, environment).reconcile,
        watches,
        reads=reads(environment),
        ignore_own_writes_for=LOCAL_MODEL_NODES,
        clock=context.clock,
    )


def reads(environment: Environment) -> tuple[Read, ...]:
    """What concerns this node alone, for every node of a cluster reads as much."""
    place = environment.node
    of_node = f"node={label_value(place.name)}"
    return (
        Read(LOCAL_MODEL_NODES, fields=f"metadata.name={place.name}"),
        Read(JOBS, namespace=place.job_namespace, labels=of_node),
        Read(PODS, namespace=place.job_namespace, labels=of_node),
        Read(CONFIG_MAPS, namespace=environment.system_namespace, fields=f"metadata.name={CONFIG_MAP}"),
    )
