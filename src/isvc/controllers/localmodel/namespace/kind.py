"""What a LocalModelNamespaceCache is to the reconciler."""

from __future__ import annotations

from typing import Final

from isvc.api.localmodel import LocalModelNamespaceCache
from isvc.api.resources import LOCAL_MODEL_NAMESPACE_CACHES
from isvc.controllers.localmodel.kind import make_cache_kind
from isvc.controllers.localmodel.observe import Observed
from isvc.engine.kind import Kind
from isvc.engine.plan import Plan
from isvc.serving.environment import Environment
from isvc.toolkit.cache import Reader

FINALIZER: Final = "localmodelnamespacecache.kserve.io/finalizer"


def make_kind(reader: Reader, environment: Environment) -> Kind[Observed, Plan]:
    return make_cache_kind(LOCAL_MODEL_NAMESPACE_CACHES, LocalModelNamespaceCache, FINALIZER, reader, environment)
