"""The configuration in force: read from the cache, and parsed again only when its ConfigMap changes.

A ConfigMap that cannot be parsed leaves the last good configuration in force, so that a typo stops nothing that runs.
One that was deleted does, too, but nothing new is begun by it: what is decided once, such as the mode of a service,
is left to the one that takes its place.
"""

from __future__ import annotations

from typing import Final

from isvc.engine.kind import Wait
from isvc.kube.errors import InternalError
from isvc.kube.objects import Key, Object, resource_version_of
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.config.configmap import CONFIG_MAP, Config, ConfigError
from isvc.toolkit.cache import Reader

RETRY: Final = 5.0


def settings_changed(namespace: str, before: Object | None, after: Object | None) -> bool:
    """Returns whether two editions of a ConfigMap are of the configuration, and say different things."""
    is_ours = Key.of(after or before or {}) == Key(namespace, CONFIG_MAP)
    return is_ours and (before or {}).get("data") != (after or {}).get("data")


class Configuration:
    def __init__(self, reader: Reader, namespace: str) -> None:
        self._reader, self._namespace = reader, namespace
        self._config: Config | None = None
        self._error: ConfigError | None = None
        self._version = ""

    def in_force(self) -> Config | None:
        """Returns the newest configuration that could be parsed; None before there ever was one."""
        stored = self._get_stored()
        if stored is not None and resource_version_of(stored) != self._version:
            try:
                self._config, self._error = Config.parse(stored.get("data") or {}), None
            except ConfigError as error:
                self._error = error
            self._version = resource_version_of(stored)
        return self._config

    @property
    def problem(self) -> str:
        """Returns what is wrong with the newest one, or with there being none."""
        if self._error is None or self._get_stored() is None:
            return f"there is no ConfigMap {CONFIG_MAP} in namespace {self._namespace}"
        return str(self._error)

    def required(self, *, is_new: bool = False) -> Config:
        """Raises `Wait` while there never was a good one, and for an object that is new while there is none."""
        config = self._config_for(is_new=is_new)
        if config is None:
            raise Wait(self.problem, RETRY)
        return config

    def __call__(self, *, is_new: bool = False) -> Config:
        """Raises `InternalError` when there never was a good one, and for an object that is new while there is none."""
        config = self._config_for(is_new=is_new)
        if config is None:
            raise InternalError(self.problem)
        return config

    def _config_for(self, *, is_new: bool) -> Config | None:
        config = self.in_force()
        return None if is_new and self._get_stored() is None else config

    def _get_stored(self) -> Object | None:
        return self._reader.get(CONFIG_MAPS, CONFIG_MAP, self._namespace)
