"""Defaulting of LLMInferenceServices, in either version."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.api.codec import DecodeError
from isvc.api.completion import complete
from isvc.api.defaults.localmodel import Cache, mark, mark_cached
from isvc.api.llm import v1alpha1, v1alpha2
from isvc.api.llm.conversion import OLD, to_v1alpha1, to_v1alpha2
from isvc.api.resources import GROUP
from isvc.kube import gourl
from isvc.kube.objects import Object, deep_copy, dig, name_of

ROUTING_GROUP = f"{GROUP}/routing-group"
"""Label that repeats the routing group, so that members find each other."""

_PODS = (
    ("template",),
    ("worker",),
    ("prefill", "template"),
    ("prefill", "worker"),
    ("router", "scheduler", "template"),
)


def default_llm_service(obj: Object, caches: Iterable[Cache] = ()) -> Object:
    """Returns the object with its defaults, as a copy. Without caches old marks of one go; raises `DecodeError`."""
    old = obj.get("apiVersion") == OLD
    kind = v1alpha1.LLMInferenceService if old else v1alpha2.LLMInferenceService
    kind.decode(obj)
    service: Object = deep_copy(complete(obj, kind))
    if old:
        service = to_v1alpha2(service)
    _set_defaults(service, caches)
    return to_v1alpha1(service) if old else service


def _set_defaults(service: Object, caches: Iterable[Cache]) -> None:
    spec = service["spec"] = service.get("spec") or {}
    set_llm_defaults(spec)
    model = spec["model"]
    if not model.get("name"):
        model["name"] = name_of(service)
    group = dig(spec, "router", "route", "group")
    mark(service, "labels", {ROUTING_GROUP: group} if group is not None else {}, instead_of=(ROUTING_GROUP,))
    mark_cached(service, model.get("uri") or "", caches)


def set_llm_defaults(spec: Object) -> None:
    """Fills in a spec that is in order but for what the schema cannot know; raises `DecodeError` for a URI.

    The name of the model is left out: a configuration that the service refers to may have it.
    """
    model = spec["model"] = spec.get("model") or {"uri": ""}
    _spell_uri(model, "spec.model")
    for index, adapter in enumerate(dig(model, "lora", "adapters") or ()):
        _spell_uri(adapter, f"spec.model.lora.adapters[{index}]")
    for path in _PODS:
        pod = dig(spec, *path)
        if isinstance(pod, dict) and pod.get("containers") is None:
            pod["containers"] = []


def _spell_uri(model: Object, path: str) -> None:
    """Writes a model's URI as in a URL: `hf://a/b%20c` for `hf://a/b c`."""
    if not (uri := model.get("uri")):
        return
    try:
        model["uri"] = gourl.normalize(uri)
    except ValueError as error:
        raise DecodeError(f"{path}.uri", f"expected an address, got {uri!r}, which {error}") from None
