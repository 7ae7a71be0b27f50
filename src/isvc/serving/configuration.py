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

    def in_force(self) -> Config | None:
        """The newest configuration that could be understood; None before there ever was one."""
        stored = self._reader.get(CONFIG_MAPS, CONFIG_MAP, self._namespace)
        if stored is not None and resource_version_of(stored) != self._version:
            self._kept.offer(stored.get("data") or {})
            self._version = resource_version_of(stored)
        return self._kept.config

    @property
    def problem(self) -> str:
        """What is wrong with the newest one, or with there being none."""
        missing = f"there is no ConfigMap {CONFIG_MAP} in namespace {self._namespace}"
        return str(self._kept.error or missing)

    def __call__(self) -> Config:
        """Raises `InternalError` when there never was a good one: nothing can be decided then."""
        config = self.in_force()
        if config is None:
            raise InternalError(self.problem)
        return config
