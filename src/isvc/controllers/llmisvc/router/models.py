"""Under which names a service is asked for its model and the model's adapters."""

from __future__ import annotations

from isvc.kube.objects import Object, dig, maps_in, name_of, namespace_of


def qualify(namespace: str, model: str) -> str:
    """Returns a model's name in paths and headers that services of a cluster share."""
    return f"publishers/{namespace}/models/{model}"


def model_name(spec: Object, service: str) -> str:
    return str(dig(spec, "model", "name") or service)


def adapter_names(spec: Object) -> list[str]:
    """Names of the adapters that have one, in their order."""
    adapters = maps_in(dig(spec, "model", "lora", "adapters"))
    return [str(adapter["name"]) for adapter in adapters if adapter.get("name")]


def routing_names(raw: Object) -> set[str]:
    """Returns the qualified names that a service is routed for: its addresses', else those of its spec."""
    if dig(raw, "status", "addresses"):
        return {model for model in addressed_models(raw) if model.startswith("publishers/")}
    spec, namespace = raw.get("spec") or {}, namespace_of(raw)
    return {qualify(namespace, model) for model in (model_name(spec, name_of(raw)), *adapter_names(spec))}


def addressed_models(raw: Object) -> set[str]:
    """Returns all names that the service's addresses answer for."""
    addresses = maps_in(dig(raw, "status", "addresses"))
    return {str(model.get("name", "")) for address in addresses for model in maps_in(address.get("models"))}


def served_models(raw: Object) -> list[str]:
    """Names in order: those of its addresses, which know of presets, else those of its spec."""
    spec = raw.get("spec") or {}
    return sorted(addressed_models(raw) or {model_name(spec, name_of(raw)), *adapter_names(spec)})
