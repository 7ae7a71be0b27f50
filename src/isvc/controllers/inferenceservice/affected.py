"""Which services a change of something shared concerns: of a runtime, a storage container, or the configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from isvc.api.annotations import AUTOSCALER_CLASS
from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.objects import Key, Object, annotations_of, dig, name_of, namespace_of
from isvc.serving.config import CONFIG_MAP, Config
from isvc.toolkit.cache import Reader

_RUNTIME_FAILURES: Final = ("NoSupportingRuntime", "RuntimeDisabled", "RuntimeNotRecognized", "InvalidPredictorSpec")
_KINDS: Final = ("predictor", "transformer", "explainer")


class Affected:
    def __init__(self, reader: Reader, configuration: Callable[[], Config | None]) -> None:
        self._reader = reader
        self._configuration = configuration
        self._changed: frozenset[str] = frozenset()  # sections of the configuration, as last compared

    def by_runtime(self, runtime: Object) -> Iterable[Key]:
        """Those that use the runtime, and those that found none and may find this one."""
        name, namespace = name_of(runtime), namespace_of(runtime)
        field = "servingRuntimeName" if namespace else "clusterServingRuntimeName"
        for service in self._reader.list(INFERENCE_SERVICES, namespace):
            status = service.get("status") or {}
            if status.get(field) == name or _waits_for_runtime(status):
                yield Key.of(service)

    def by_lost_runtime(self, runtime: Object) -> Iterable[Key]:
        """Those that were refused, which may now be refused for another reason."""
        for service in self._reader.list(INFERENCE_SERVICES, namespace_of(runtime)):
            if _waits_for_runtime(service.get("status") or {}):
                yield Key.of(service)

    def by_storage(self, container: Object) -> Iterable[Key]:
        """Those that have not been deployed completely, perhaps for want of this container."""
        for service in self._reader.list(INFERENCE_SERVICES):
            conditions = dig(service, "status", "conditions") or ()
            if not any(condition.get("type") == "Stopped" for condition in conditions):
                yield Key.of(service)

    def settings_changed(self, before: Object | None, after: Object | None) -> bool:
        """Whether a ConfigMap of the system namespace says something new that matters to services."""
        old, new = ((each or {}).get("data") or {} for each in (before, after))
        changed = frozenset(key for key in {*old, *new} if old.get(key) != new.get(key))
        if (name := name_of(after or before or {})) != CONFIG_MAP:
            config = self._configuration()
            return bool(changed and config and config.storage_initializer.ca_bundle_config_map_name == name)
        self._changed = changed & _SECTIONS.keys()
        return bool(self._changed)

    def by_settings(self, config_map: Object) -> Iterable[Key]:
        """Those that the changed sections are about; a CA bundle is about all."""
        sections = self._changed if name_of(config_map) == CONFIG_MAP else frozenset({"storageInitializer"})
        for service in self._reader.list(INFERENCE_SERVICES):
            if any(_SECTIONS[section](service) for section in sections):
                yield Key.of(service)


def _waits_for_runtime(status: Object) -> bool:
    model = status.get("modelStatus") or {}
    refused = model.get("transitionStatus") == "InvalidSpec"
    return refused and dig(model, "lastFailureInfo", "reason") in _RUNTIME_FAILURES


def _anyone(service: Object) -> bool:
    return True


def _explained(service: Object) -> bool:
    return dig(service, "spec", "explainer") is not None


def _spread(service: Object) -> bool:
    return dig(service, "spec", "predictor", "workerSpec") is not None


def _with_several_models(service: Object) -> bool:
    return any(dig(service, "spec", kind, "storageUris") for kind in _KINDS)


def _scaled_by_keda(service: Object) -> bool:
    own = (dig(service, "spec", kind, "annotations") or {} for kind in _KINDS)
    return any(annotations.get(AUTOSCALER_CLASS) == "keda" for annotations in (annotations_of(service), *own))


# What is not listed here concerns pods alone, which are admitted one by one, or other controllers.
_SECTIONS: Final[Mapping[str, Callable[[Object], bool]]] = {
    "autoscaler": _scaled_by_keda,
    "credentials": _with_several_models,
    "deploy": _anyone,
    "explainers": _explained,
    "inferenceService": _anyone,
    "ingress": _anyone,
    "multiNode": _spread,
    "opentelemetryCollector": _scaled_by_keda,
    "service": _anyone,
    "storageInitializer": _anyone,
}
