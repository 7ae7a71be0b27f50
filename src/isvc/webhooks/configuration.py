"""The configuration in force, read from memory and parsed again only when its ConfigMap changes."""

from __future__ import annotations

from isvc.kube.errors import InternalError
from isvc.kube.objects import resource_version_of
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.config import CONFIG_MAP, Config, Kept
from isvc.toolkit.cache import Reader


class Configuration:
    def __init__(self, reader: Reader, namespace: str) -> None:
        self._reader, self._namespace = reader, namespace
        self._kept, self._version = Kept(), ""

    def __call__(self) -> Config:
        """Raises `InternalError` when there never was a good one: nothing can be decided then."""
        stored = self._reader.get(CONFIG_MAPS, CONFIG_MAP, self._namespace)
        if stored is not None and resource_version_of(stored) != self._version:
            self._kept.offer(stored.get("data") or {})
            self._version = resource_version_of(stored)
        if self._kept.config is None:
            missing = f"there is no ConfigMap {CONFIG_MAP} in namespace {self._namespace}"
            raise InternalError(str(self._kept.error or missing))
        return self._kept.config
