"""What triggers a look at the list of a node, and how its controller is built."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.api.resources import (
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
from isvc.controllers.localmodel.lists.kind import make_kind
from isvc.controllers.localmodel.node_groups import membership
from isvc.controllers.localmodel.watches import reads
from isvc.engine.reconciler import Reconciler
from isvc.kube.objects import Key, Object, finalizers_of, is_being_deleted
from isvc.kube.resource import NODES
from isvc.serving.environment import Environment
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch, changed, spec_changed

__all__ = ["controller", "reads"]

WORKERS = 4
COALESCE = 0.1  # whoever creates a cache often creates another: one write tells a node of both


def controller(context: Context, environment: Environment) -> Controller:
    cache = context.cache
    reconciler = Reconciler(make_kind(cache, environment), context)

    def every_list(_: Object) -> Iterable[Key]:
        return cache.all_keys(LOCAL_MODEL_NODES)

    watches = (
        Watch(LOCAL_MODEL_NODES, when=spec_changed, optional=True),
        Watch(NODES, when=changed(membership)),
        Watch(LOCAL_MODEL_NODE_GROUPS, to=every_list, when=spec_changed, delay=COALESCE, optional=True),
        Watch(LOCAL_MODEL_CACHES, to=every_list, when=changed(_wishes), delay=COALESCE, optional=True),
        Watch(LOCAL_MODEL_NAMESPACE_CACHES, to=every_list, when=changed(_wishes), delay=COALESCE, optional=True),
    )
    return Controller(
        "localmodellists",
        reconciler.reconcile,
        watches,
        workers=WORKERS,
        reads=reads(environment),
        ignore_own_writes_for=LOCAL_MODEL_NODES,
        clock=context.clock,
    )


def _wishes(cache: Object) -> tuple[object, ...]:
    """Returns what a cache wants of nodes; its status does not matter."""
    return cache.get("spec"), is_being_deleted(cache), finalizers_of(cache)
