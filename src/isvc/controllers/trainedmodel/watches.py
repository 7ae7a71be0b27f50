"""What triggers a reconcile of a TrainedModel, and how its controller is built."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.api.resources import INFERENCE_SERVICES, TRAINED_MODELS
from isvc.controllers.trainedmodel.kind import make_kind
from isvc.engine.reconciler import Reconciler
from isvc.kube.objects import Key, Object, dig, generation_of, namespace_of
from isvc.kube.readiness import is_ready
from isvc.serving.environment import Environment
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch
from isvc.toolkit.reads import Read

BY_SERVICE = "models by service"


def controller(context: Context, environment: Environment) -> Controller:
    """One worker: models of one service share its memory and its list."""
    cache = context.cache
    reconciler = Reconciler(make_kind(cache, environment), context)

    def models_of(before: Object | None, after: Object | None) -> Iterable[Key]:
        """Returns the models of a service whose readiness, address or spec changed; few services have any."""
        models = cache.keys(TRAINED_MODELS, BY_SERVICE, str(Key.of(after or before or {})))
        return models if models and _relevant_state(before) != _relevant_state(after) else ()

    def siblings_of(model: Object) -> Iterable[Key]:
        """Yields the models that share a service with this one, which may now have room or no longer have it."""
        for place in _service(model):
            yield from cache.keys(TRAINED_MODELS, BY_SERVICE, place)

    watches = (
        Watch(TRAINED_MODELS, optional=True),
        Watch(TRAINED_MODELS, to=siblings_of, when=_made_room, optional=True),
        Watch(INFERENCE_SERVICES, on_change=models_of),
    )
    return Controller(
        "trainedmodel", reconciler.reconcile, watches, workers=1, reads=reads(environment), clock=context.clock
    )


def reads(environment: Environment) -> tuple[Read, ...]:
    return (Read(TRAINED_MODELS, indexers={BY_SERVICE: _service}, optional=True),)


def _service(model: Object) -> Iterable[str]:
    parent = dig(model, "spec", "inferenceService")
    return (f"{namespace_of(model)}/{parent}",) if parent else ()


def _made_room(before: Object | None, after: Object | None) -> bool:
    """A model that goes or moves leaves memory to the others of its service."""
    return before is not None and (after is None or list(_service(before)) != list(_service(after)))


def _relevant_state(service: Object | None) -> tuple[object, ...]:
    """Returns what a model's own status follows from."""
    service = service or {}
    return is_ready(service), dig(service, "status", "url"), dig(service, "status", "address"), generation_of(service)
