"""Which configurations a service uses, and which services use a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final, Protocol

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.kube.objects import Key, Object, dig, maps_in, name_of, namespace_of
from isvc.kube.resource import Resource
from isvc.serving.llm.presets import preset_names
from isvc.toolkit.store import Indexer

CONFIG_INDEX: Final = "configuration"


class Names(Protocol):
    """What is needed of a cache."""

    def keys(self, resource: Resource, index_name: str, value: str) -> Sequence[Key]: ...

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None: ...


def configs_of(service: Object, prefix: str) -> Iterable[str]:
    """Returns the names of all configurations that went into a service, or may when it has none yet.

    Once configurations are applied the status has them all, and the references that are new to the spec are added.
    """
    references = [str(ref.get("name", "")) for ref in maps_in(dig(service, "spec", "baseRefs"))]
    applied = [str(ref.get("name", "")) for ref in maps_in(dig(service, "status", "appliedConfigs"))]
    pinned = dig(service, "status", "annotations")
    names = map(str, pinned.values()) if isinstance(pinned, dict) else ()
    implied = () if applied else (*names, *preset_names(prefix))
    return dict.fromkeys((*references, *applied, *implied))


@cache
def config_indexer(prefix: str) -> Indexer:
    """Indexes services by the configurations they use; the same function for all who read by it."""
    return lambda service: configs_of(service, prefix)


def users_of(config: Object, names: Names, system_namespace: str) -> Iterator[Key]:
    """Yields the services that an edit of this configuration reaches.

    One of a service's own namespace hides the system's of the same name.
    """
    name, namespace = name_of(config), namespace_of(config)
    for key in names.keys(LLM_INFERENCE_SERVICES, CONFIG_INDEX, name):
        service = names.get(LLM_INFERENCE_SERVICES, key.name, key.namespace)
        if key.namespace == namespace or (namespace == system_namespace and not _has_its_own(service, name)):
            yield key


def _has_its_own(service: Object | None, name: str) -> bool:
    applied = maps_in(dig(service or {}, "status", "appliedConfigs"))
    places = {ref.get("namespace") for ref in applied if ref.get("name") == name}
    return places == {namespace_of(service)} if service else False
