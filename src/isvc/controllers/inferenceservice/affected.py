"""Which services to reconcile when the configuration changes, or those that scale them come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from isvc.api.annotations import AUTOSCALER_CLASS
from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.objects import Key, Object, annotations_of, dig, name_of
from isvc.serving.config import CONFIG_MAP, Config
from isvc.serving.workload.scalers import availability_changed
from isvc.toolkit.cache import Reader

_KINDS: Final = ("predictor", "transformer", "explainer")


class Affected:
    def __init__(self, reader: Reader, configuration: Callable[[], Config | None]) -> None:
        self._reader = reader
        self._configuration = configuration

    def by_settings(self, before: Object | None, after: Object | None) -> Iterable[Key]:
        """Yields those that a changed ConfigMap of the system namespace concerns: a CA bundle concerns all services."""
        concerned = {_SECTIONS[section] for section in self._changed_sections(before, after)}
        if _any in concerned:
            yield from self._reader.all_keys(INFERENCE_SERVICES)
        elif concerned:
            yield from (key for key, service in self._services() if any(concerns(service) for concerns in concerned))

    def by_scalers(self, before: Object | None, after: Object | None) -> Iterable[Key]:
        """Yields those that rely on KEDA, of which an EndpointSlice tells that it is away, or there again."""
        if availability_changed(before, after):
            yield from (key for key, service in self._services() if _scaled_by_keda(service))

    def _services(self) -> Iterator[tuple[Key, Object]]:
        """Yields one after the other: all of them decoded at once would take six times the memory of the cache."""
        for key in self._reader.all_keys(INFERENCE_SERVICES):
            if (service := self._reader.get(INFERENCE_SERVICES, key.name, key.namespace)) is not None:
                yield key, service

    def _changed_sections(self, before: Object | None, after: Object | None) -> frozenset[str]:
        old, new = ((each or {}).get("data") or {} for each in (before, after))
        changed = frozenset(key for key in {*old, *new} if old.get(key) != new.get(key))
        if (name := name_of(after or before or {})) == CONFIG_MAP:
            return changed & _SECTIONS.keys()
        config = self._configuration()
        is_bundle = config is not None and config.storage_initializer.ca_bundle_config_map_name == name
        return frozenset({"storageInitializer"}) if changed and is_bundle else frozenset()


def _any(service: Object) -> bool:
    return True


def _has_explainer(service: Object) -> bool:
    return dig(service, "spec", "explainer") is not None


def _is_multi_node(service: Object) -> bool:
    return dig(service, "spec", "predictor", "workerSpec") is not None


def _with_several_models(service: Object) -> bool:
    return any(dig(service, "spec", kind, "storageUris") for kind in _KINDS)


def _scaled_by_keda(service: Object) -> bool:
    own = (dig(service, "spec", kind, "annotations") or {} for kind in _KINDS)
    return any(annotations.get(AUTOSCALER_CLASS) == "keda" for annotations in (annotations_of(service), *own))


# Sections that are not listed concern other controllers, or pods alone, which the webhook configures one by one.
_SECTIONS: Final[Mapping[str, Callable[[Object], bool]]] = {
    "autoscaler": _scaled_by_keda,
    "credentials": _with_several_models,
    "deploy": _any,
    "explainers": _has_explainer,
    "inferenceService": _any,
    "ingress": _any,
    "multiNode": _is_multi_node,
    "opentelemetryCollector": _scaled_by_keda,
    "service": _any,
    "storageInitializer": _any,
}
