"""Defaulting of InferenceServices.

Old spellings turn into today's, a framework field turns into `model`, containers get a name and resources, and a
service whose model is cached on its nodes is marked as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from isvc.api.completion import complete
from isvc.api.defaults.localmodel import Cache, mark, mark_cached
from isvc.api.inferenceservice import InferenceService, InferenceServiceSpec
from isvc.api.inferenceservice.frameworks import FORMAT_PROTOCOLS, MODEL_FORMAT, model_for_framework
from isvc.api.inferenceservice.implementations import CONTAINER, implementations
from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode, current_name
from isvc.kube.objects import Object, annotations_of, deep_copy

_NAMES: Final = ("predictor", "transformer", "explainer")


@dataclass(frozen=True, slots=True)
class ServiceDefaults:
    """What the configuration says about services that do not say it themselves."""

    mode: DeploymentMode = DeploymentMode.KNATIVE
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    art_version: str = ""
    mount_token: bool = True


def default_service(obj: Object, defaults: ServiceDefaults, caches: Iterable[Cache] = ()) -> Object:
    """Returns the object with its defaults, as a copy. `caches` are tried in their order; raises `DecodeError`."""
    InferenceService.decode(obj)
    service: Object = deep_copy(complete(obj, InferenceService))
    mode = _set_mode(service, defaults)
    if mode != DeploymentMode.MODEL_MESH:
        _set_model(service)
    spec = InferenceService.decode(service).spec
    _set_components(service, spec, defaults, with_predictor=mode != DeploymentMode.MODEL_MESH)
    _set_cache(service, spec, caches)
    if not defaults.mount_token:
        for component in _components(service).values():
            component.setdefault("automountServiceAccountToken", False)
    return service


def default_stored(service: Object) -> Object:
    """Returns a stored service with the defaults that planning counts on; itself if it has them, or is malformed.

    It may have been stored past the webhook, or before there was one. What the configuration adds at admission is
    left out: a later configuration would change what runs.
    """
    spec = service.get("spec")
    found = ((name, spec.get(name)) for name in _NAMES) if isinstance(spec, dict) else ()
    known = ((name, component) for name, component in found if isinstance(component, dict))
    changed = {name: now for name, then in known if (now := _default_component(name, then)) is not then}
    return {**service, "spec": {**service["spec"], **changed}} if changed else service


def _default_component(name: str, component: Object) -> Object:
    if name == "predictor":
        component = _with_protocol(model_for_framework(component))
    containers = component.get("containers")
    if not isinstance(containers, list) or not containers or not isinstance(containers[0], dict):
        return component
    if component.get("model") is not None or component.get("art") is not None:
        return component  # containers beside the server's
    if containers[0].get("name") == CONTAINER or not _names_container(name, containers):
        return component
    return {**component, "containers": [{**containers[0], "name": CONTAINER}, *containers[1:]]}


def _with_protocol(predictor: Object) -> Object:
    """Returns the predictor; where its model's format has a protocol of its own and `model` names none, with that."""
    model = predictor.get("model")
    model_format = model.get("modelFormat") if isinstance(model, dict) else None
    name = str(model_format.get("name")) if isinstance(model_format, dict) else ""
    if model is None or name not in FORMAT_PROTOCOLS or model.get("protocolVersion") is not None:
        return predictor
    return {**predictor, "model": {**model, "protocolVersion": FORMAT_PROTOCOLS[name].value}}


def _names_container(component: str, containers: list[Object]) -> bool:
    """Returns whether the first container is the server, whatever it is called."""
    return component != "predictor" or len(containers) == 1 or not containers[0].get("name")


def _components(service: Object) -> dict[str, Object]:
    spec = service.get("spec") or {}
    return {name: spec[name] for name in _NAMES if spec.get(name) is not None}


def _set_mode(service: Object, defaults: ServiceDefaults) -> str:
    """Writes the mode down, unless it is Knative by default; gives what the user asked for."""
    asked = annotations_of(service).get(DEPLOYMENT_MODE)
    if asked is not None:
        mark(service, "annotations", {DEPLOYMENT_MODE: current_name(asked)})
    elif defaults.mode is not DeploymentMode.KNATIVE:
        mark(service, "annotations", {DEPLOYMENT_MODE: defaults.mode.value})
    return current_name(asked or "")


def _set_model(service: Object) -> None:
    """Turns the first framework field into `model`. A framework beside `model` wins: that is how it always was."""
    predictor = _components(service).get("predictor")
    if predictor is None:
        return
    predictor = service["spec"]["predictor"] = _with_protocol(model_for_framework(predictor))
    model = predictor.get("model")
    if model is None:
        return
    name = (model.get("modelFormat") or {}).get("name") or ""
    if name and MODEL_FORMAT not in annotations_of(service):
        mark(service, "annotations", {MODEL_FORMAT: name})


def _set_components(
    service: Object, spec: InferenceServiceSpec, defaults: ServiceDefaults, *, with_predictor: bool
) -> None:
    raw = _components(service)
    for name in _NAMES if with_predictor else _NAMES[1:]:
        component = getattr(spec, name)
        chosen = implementations(component) if name in raw and component is not None else []
        if len(chosen) == 1 and chosen[0].field in _SETTERS:
            _SETTERS[chosen[0].field](name, raw[name], defaults)


def _set_container(name: str, component: Object, defaults: ServiceDefaults) -> None:
    containers = component["containers"]
    if _names_container(name, containers):
        containers[0]["name"] = CONTAINER
    _set_resources(containers[0], defaults)


def _set_art(_: str, component: Object, defaults: ServiceDefaults) -> None:
    art = component["art"]
    art["name"] = CONTAINER
    if art.get("runtimeVersion") is None:
        art["runtimeVersion"] = defaults.art_version
    _set_resources(art, defaults)


_SETTERS: Mapping[str, Callable[[str, Object, ServiceDefaults], None]] = {
    "containers": _set_container,
    "art": _set_art,
}


def _set_resources(container: Object, defaults: ServiceDefaults) -> None:
    resources = container["resources"] = container.get("resources") or {}
    for name, values in (("requests", defaults.requests), ("limits", defaults.limits)):
        if values or resources.get(name):
            resources[name] = {**values, **(resources.get(name) or {})}


def _set_cache(service: Object, spec: InferenceServiceSpec, caches: Iterable[Cache]) -> None:
    chosen = implementations(spec.predictor)
    uri = chosen[0].storage_uri if chosen else None
    if uri is not None:
        mark_cached(service, uri, caches)
