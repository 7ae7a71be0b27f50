"""What a LocalModelCache is to the reconciler, and what a LocalModelNamespaceCache has in common with it."""

from __future__ import annotations

from typing import Final

from isvc.api.localmodel import LocalModelCache
from isvc.api.meta import Kind as APIType
from isvc.api.resources import LOCAL_MODEL_CACHES
from isvc.controllers.localmodel.observe import Observed, Observer
from isvc.controllers.localmodel.plan import VOLUMES, claim, doubts, plan
from isvc.controllers.localmodel.status import fold
from isvc.controllers.localmodel.volumes import unowned_objects
from isvc.engine.kind import Folded, Kind
from isvc.engine.needs import Answers
from isvc.engine.plan import Part, Plan, Retire
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.serving.environment import Environment
from isvc.toolkit.cache import Reader

FINALIZER: Final = "localmodel.kserve.io/finalizer"


def make_kind(reader: Reader, environment: Environment) -> Kind[Observed, Plan]:
    return make_cache_kind(LOCAL_MODEL_CACHES, LocalModelCache, FINALIZER, reader, environment)


def make_cache_kind(
    resource: Resource, api_type: type[APIType], finalizer: str, reader: Reader, environment: Environment
) -> Kind[Observed, Plan]:
    """Returns the kind of a cache, of the cluster or of a namespace."""
    observer = Observer(reader, environment)

    def finalize(raw: Object, answers: Answers, now: str) -> Plan | Folded:
        """Waits until no list has the model; what the cache owns is left to the garbage collector."""
        if observer.nodes_with_model(raw):
            return Folded(raw.get("status") or {})
        found = unowned_objects(observer.volumes(raw), observer.claims(raw))
        return Plan((Part("volumes", Retire("the cache goes"), found=found),))

    return Kind(
        resource=resource,
        api_type=api_type,
        conditions=None,
        children=VOLUMES,
        finalizer=finalizer,
        observe=observer.observe,
        claim=claim,
        plan=plan,
        fold=fold,
        finalize=finalize,
        doubts=doubts,
    )
