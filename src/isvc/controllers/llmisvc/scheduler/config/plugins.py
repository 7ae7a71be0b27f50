"""Plugins of an EndpointPickerConfig: found, renamed and replaced. Configurations are changed in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isvc.kube.objects import Object, dig

PRECISE_PREFIX_SCORER = "precise-prefix-cache-scorer"
PREFIX_SCORER = "prefix-cache-scorer"
TOKEN_PRODUCER = "token-producer"  # noqa: S105 - tokens of a text
LATENCY_PRODUCER = "predicted-latency-producer"


def plugins(config: Any) -> Iterator[Object]:
    declared = dig(config, "plugins")
    return (each for each in (declared if isinstance(declared, list) else ()) if isinstance(each, dict))


def of_type(config: Any, *types: str) -> Iterator[Object]:
    return (plugin for plugin in plugins(config) if plugin.get("type") in types)


def has_type(config: Any, *types: str) -> bool:
    return next(of_type(config, *types), None) is not None


def parameters(plugin: Object) -> Object:
    """Returns what the plugin is configured with; writing to it changes the plugin only where there are some."""
    found = plugin.get("parameters")
    return found if isinstance(found, dict) else {}


def section(parent: Object, key: str) -> Object:
    """Returns the object at a key, made where there is none."""
    if not isinstance(parent.get(key), dict):
        parent[key] = {}
    found: Object = parent[key]
    return found


def rename(config: Object, old: str, new: str) -> None:
    for plugin in plugins(config):
        plugin |= {key: new for key in ("type", "name") if plugin.get(key) == old}
    for references in profiles(config):
        for reference in references:
            if isinstance(reference, dict) and reference.get("pluginRef") == old:
                reference["pluginRef"] = new


def add(config: Object, plugin: Object) -> None:
    """Declares a plugin, unless one of its type is."""
    if not has_type(config, plugin["type"]):
        declared = config.get("plugins")
        config["plugins"] = [*(declared if isinstance(declared, list) else []), plugin]


def profiles(config: Object) -> Iterator[list[Any]]:
    """Yields the references to plugins of each scheduling profile."""
    declared = config.get("schedulingProfiles")
    for profile in declared if isinstance(declared, list) else ():
        references = profile.get("plugins") if isinstance(profile, dict) else None
        if isinstance(references, list):
            yield references
