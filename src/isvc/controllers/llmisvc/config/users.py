"""Who uses a configuration. A preset counts as used by every service that could need it."""

from __future__ import annotations

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.usage import CONFIG_INDEX
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.serving.llm.presets import preset_names
from isvc.toolkit.cache import Reader


class Users:
    def __init__(self, cache: Reader, system_namespace: str, prefix: str) -> None:
        self._cache = cache
        self._system_namespace = system_namespace
        self._presets = preset_names(prefix)

    def of(self, config: Object) -> list[Key]:
        """Returns the services that use the configuration, in order."""
        name, namespace = name_of(config), namespace_of(config)
        everywhere = namespace == self._system_namespace
        if name in self._presets:
            return list(self._cache.all_keys(LLM_INFERENCE_SERVICES, "" if everywhere else namespace))
        keys = self._cache.keys(LLM_INFERENCE_SERVICES, CONFIG_INDEX, name)
        reached = (key for key in keys if everywhere or key.namespace == namespace)
        return sorted(key for key in reached if self._uses(key, name, namespace))

    def _uses(self, key: Key, name: str, namespace: str) -> bool:
        """What was applied tells from where a name was taken; a new reference may be taken from either place."""
        service = self._cache.get(LLM_INFERENCE_SERVICES, key.name, key.namespace) or {}
        places = [
            applied.get("namespace")
            for applied in dig(service, "status", "appliedConfigs") or ()
            if applied.get("name") == name
        ]
        return namespace in places or not places
