"""Which models a node should have, decided from all caches."""

from __future__ import annotations

from functools import partial

from isvc.api.resources import LOCAL_MODEL_NODES
from isvc.controllers.localmodel.entries import entries_of, key_of
from isvc.controllers.localmodel.lists.observe import Cached, Observed
from isvc.engine.plan import ChildKey, Edit, Part, Plan, Retire, Want
from isvc.kube.objects import Key, Object


def plan(observed: Observed) -> Plan:
    change = partial(revise, observed.name, observed.caches)
    if not observed.exists and not _revise(observed.name, observed.caches, entries_of(observed.raw)):
        goes = Retire("its node is gone")
        return Plan((Part("list", goes, found=((LOCAL_MODEL_NODES, observed.raw),)),))
    edit = Edit(ChildKey(LOCAL_MODEL_NODES, observed.name), change, observed.raw)
    return Plan((Part("list", Want((), (edit,))),))


def revise(node: str, caches: tuple[Cached, ...], live: Object | None) -> Object | None:
    """Returns the patch that a list lacks; None for one that is as it should be, or that is gone."""
    if live is None:
        return None
    revised = _revise(node, caches, entries_of(live))
    return None if revised == entries_of(live) else {"spec": {"localModels": revised}}


def _revise(node: str, caches: tuple[Cached, ...], models: list[Object]) -> list[Object]:
    """Returns the list as it should be: entries stay where they are, new ones come last.

    A node that is not ready gets nothing new, and keeps what it has: it may come back. A cache of which nobody knows
    where it belongs stays where it is.
    """
    listed = {key_of(model): model for model in models}
    kept: dict[Key, Object] = {}
    for cached in caches:
        here = next(((group, entry) for group, entry in cached.entries or () if node in group.nodes), None)
        before = listed.get(cached.key)
        if here is not None and here[0].nodes[node]:
            kept[cached.key] = before if before is not None and _say_the_same(before, here[1]) else here[1]
        elif before is not None and (here is not None or cached.entries is None):
            kept[cached.key] = before
    stay = [key for key in listed if key in kept]
    come = sorted(key for key in kept if key not in listed)
    return [kept[key] for key in (*stay, *come)]


def _say_the_same(one: Object, other: Object) -> bool:
    """Fields that say nothing may be there or not."""
    return {key: value for key, value in one.items() if value} == {key: value for key, value in other.items() if value}
