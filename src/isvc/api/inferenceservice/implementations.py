"""What a component runs: the one of its many ways to say it that its user chose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from isvc.api.inferenceservice import ExplainerSpec, PredictorSpec, TransformerSpec
from isvc.api.inferenceservice.frameworks import FRAMEWORKS
from isvc.api.inferenceservice.models import ConfidentialSpec, PredictorExtensionSpec
from isvc.kube.objects import Object

CONTAINER = "kserve-container"
"""The container that answers requests."""
TRANSFORMER_CONTAINER = "transformer-container"
"""The container that transforms requests in the predictor's own pod."""
STORAGE_URI_ENV = "STORAGE_URI"
"""Environment variable with which a container of one's own says what to download."""

_MODELS = (*FRAMEWORKS, "model")

Component = PredictorSpec | TransformerSpec | ExplainerSpec


class Implementation(NamedTuple):
    field: str
    """Name of the field that says it: a framework, `model`, `art`, or `containers`."""
    storage_uri: str | None
    container: Object
    """The container's own fields, as far as the user wrote them."""
    confidential: ConfidentialSpec | None = None


def implementations(component: Component) -> list[Implementation]:
    """Returns all that the user chose; a good component has exactly one."""
    if isinstance(component, PredictorSpec):
        return _of_predictor(component)
    chosen = []
    if isinstance(component, ExplainerSpec) and component.art is not None:
        chosen.append(Implementation("art", component.art.storage_uri or None, component.art.container))
    if containers := containers_of(component.pod):
        chosen.append(Implementation("containers", env_value(containers[0], STORAGE_URI_ENV), containers[0]))
    return chosen


def _of_predictor(predictor: PredictorSpec) -> list[Implementation]:
    chosen = [
        Implementation(name, spec.storage_uri, spec.container, spec.confidential)
        for name, spec in named_models(predictor)
    ]
    containers = containers_of(predictor.pod)
    own = [container for container in containers if container.get("name") == CONTAINER]
    if containers and not chosen and not own:
        chosen.append(Implementation("containers", None, containers[0]))
    return chosen + [Implementation("containers", env_value(own[0], STORAGE_URI_ENV), own[0]) for _ in own]


def named_models(predictor: PredictorSpec) -> Iterator[tuple[str, PredictorExtensionSpec]]:
    """Yields frameworks and `model`, as far as they are set."""
    for name in _MODELS:
        spec: PredictorExtensionSpec | None = getattr(predictor, name)
        if spec is not None:
            yield name, spec


def containers_of(pod: Object, field: str = "containers") -> list[Object]:
    return pod.get(field) or []


def env_value(container: Object, name: str) -> str | None:
    """Returns the value of an environment variable, "" when it comes from elsewhere, None when it is not set."""
    for variable in container.get("env") or ():
        if variable.get("name") == name:
            return variable.get("value") or ""
    return None
