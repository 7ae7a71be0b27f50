"""Observes services: reads from memory all that decisions about one are based on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from isvc.api.resources import (
    LLM_INFERENCE_SERVICE_CONFIGS,
    LLM_INFERENCE_SERVICES,
)
from isvc.controllers.llmisvc.observed import Merged, Observed
from isvc.controllers.llmisvc.plan import CHILDREN
from isvc.controllers.llmisvc.presets import Sources, combine, pins
from isvc.controllers.llmisvc.router.observe import observe_network
from isvc.kube.objects import Key, Object, labels_of, name_of, namespace_of, uid_of
from isvc.kube.resource import CONFIG_MAPS, PODS, RESOURCE_CLAIM_TEMPLATES, SERVICE_ACCOUNTS, Resource
from isvc.serving.config import Config
from isvc.serving.config.current import Configuration
from isvc.serving.credentials import Lookup, NotLookedUp
from isvc.serving.environment import Environment
from isvc.serving.llm.labels import NAME
from isvc.serving.llm.presets import Settings
from isvc.serving.thirdparty import (
    GATEWAY_CLASSES,
    GATEWAYS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    LEADER_WORKER_SETS,
    SCALED_OBJECTS,
)
from isvc.toolkit.cache import OWNER, Reader

POD_INDEX: Final = "llm service"
OPTIONAL: Final = (
    HTTP_ROUTES,
    GATEWAYS,
    GATEWAY_CLASSES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    LEADER_WORKER_SETS,
    SCALED_OBJECTS,
    RESOURCE_CLAIM_TEMPLATES,
)
_MERGES_KEPT: Final = 1000


@dataclass(frozen=True, slots=True)
class Reads:
    """What had to be read from the API server for one service, because no informer has it."""

    lookup: Lookup
    config_maps: Mapping[Key, Object | None] = field(default_factory=dict)


class Observer:
    """Observes services through a reader; what is merged stays merged while nothing that went into it changes."""

    def __init__(self, reader: Reader, system_namespace: str, environment: Environment) -> None:
        self._reader = reader
        self._system_namespace = system_namespace
        self._environment = environment
        self._merges: OrderedDict[Key, tuple[object, Merged]] = OrderedDict()
        self.configuration = Configuration(reader, system_namespace)

    def service(self, key: Key) -> Object | None:
        return self._reader.get(LLM_INFERENCE_SERVICES, key.name, key.namespace)

    def reads(self, key: Key) -> Reads:
        accounts = _Accounts(self._reader, key.namespace)
        return Reads(Lookup(key.namespace, service_accounts=accounts))

    def sources(self, reads: Reads) -> Sources:
        def config_map(namespace: str, name: str) -> Object | None:
            known = self._reader.get(CONFIG_MAPS, name, namespace)
            if known is not None or namespace == self._system_namespace:
                return known
            if (key := Key(namespace, name)) not in reads.config_maps:
                raise NotLookedUp(CONFIG_MAPS, (name,))
            return reads.config_maps[key]

        chosen = self._environment
        return Sources(self.config, config_map, self._system_namespace, chosen.preset_prefix, chosen.pin_presets)

    def config(self, namespace: str, name: str) -> Object | None:
        return self._reader.get(LLM_INFERENCE_SERVICE_CONFIGS, name, namespace)

    def merge(self, raw: Object, config: Config, reads: Reads) -> Merged:
        """Raises `NotCombined`, and `NotLookedUp` for a ConfigMap that has to be read first."""
        settings = Settings.of(config, self._system_namespace)
        key = Key.of(raw)
        known = self._merges.get(key)
        if known is not None and known[0] == self._ingredients(raw, settings, known[1], reads):
            return known[1]
        merged = combine(raw, settings, self.sources(reads))
        self._merges[key] = self._ingredients(raw, settings, merged, reads), merged
        if len(self._merges) > _MERGES_KEPT:
            self._merges.popitem(last=False)
        return merged

    def _ingredients(self, raw: Object, settings: Settings, merged: Merged, reads: Reads) -> object:
        """What a merge was made of: equal ingredients give an equal merge."""
        metadata = raw["metadata"]
        places = (namespace_of(raw), self._system_namespace)
        configs = [_edition(self.config(place, applied.name)) for applied in merged.applied for place in places]
        sources = self.sources(reads)
        scheduler = merged.scheduler_config_map
        config_map = scheduler and sources.config_map(scheduler.namespace, scheduler.name)
        return (
            uid_of(raw),
            metadata.get("generation"),
            metadata.get("labels"),
            metadata.get("annotations"),
            pins(raw.get("status") or {}, sources),
            settings,
            configs,
            config_map and config_map.get("data"),
        )

    def observe(self, raw: Object, config: Config, merged: Merged, reads: Reads, now: str) -> Observed:
        reader = self._reader
        served = frozenset(resource for resource in OPTIONAL if reader.serves(resource))
        bundle = config.storage_initializer.ca_bundle_config_map_name
        return Observed(
            raw=raw,
            merged=merged,
            config=config,
            settings=Settings.of(config, self._system_namespace),
            live=dict(self._children(raw, served)),
            network=replace(observe_network(reader, merged.spec, raw), wildcard_label=self._environment.wildcard_label),
            pods=reader.by_index(PODS, POD_INDEX, str(Key.of(raw))),
            served=served,
            ca_bundle=reader.get(CONFIG_MAPS, bundle, self._system_namespace) if bundle else None,
            lookup=reads.lookup,
            system_namespace=self._system_namespace,
            cluster_wide=self._environment.cluster_wide,
            now=now,
        )

    def _children(self, raw: Object, served: frozenset[Resource]) -> Iterator[tuple[tuple[Resource, str], Object]]:
        for resource in CHILDREN:
            if resource in OPTIONAL and resource not in served:
                continue
            for child in self._reader.by_index(resource, OWNER, uid_of(raw)):
                yield (resource, name_of(child)), child


def _edition(config: Object | None) -> tuple[str, int] | None:
    """What changes with the spec of an object, and not with its status."""
    return (uid_of(config), int(config["metadata"].get("generation") or 0)) if config else None


def service_of_pod(pod: Object) -> Iterable[Key]:
    if name := labels_of(pod).get(NAME):
        yield Key(namespace_of(pod), name)


class _Accounts(Mapping[str, Object | None]):
    """The service accounts of a namespace, read from memory when they are asked for."""

    def __init__(self, reader: Reader, namespace: str) -> None:
        self._reader, self._namespace = reader, namespace

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Object | None:
        return self._reader.get(SERVICE_ACCOUNTS, name, self._namespace)

    def __iter__(self) -> Iterator[str]:
        return (key.name for key in self._reader.all_keys(SERVICE_ACCOUNTS, self._namespace))

    def __len__(self) -> int:
        return len(self._reader.all_keys(SERVICE_ACCOUNTS, self._namespace))
