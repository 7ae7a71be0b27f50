"""The configuration in force: read from the cache, and parsed again only when its ConfigMap changes.

A ConfigMap that cannot be parsed leaves the last good configuration in force, so that a typo stops nothing that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
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


class LastValid:
    """The newest configuration that could be parsed, and what is wrong with the newest one that could not."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config
        self.error: ConfigError | None = None

    def offer(self, data: Mapping[str, str]) -> Config | None:
        """Takes a ConfigMap's `data`; returns the configuration in force, which is the old one if this one is bad."""
        try:
            self.config, self.error = Config.parse(data), None
        except ConfigError as error:
            self.error = error
        return self.config


class Configuration:
    def __init__(self, reader: Reader, namespace: str) -> None:
        self._reader, self._namespace = reader, namespace
        self._last_valid, self._version = LastValid(), ""

    def in_force(self) -> Config | None:
        """Returns the newest configuration that could be parsed; None before there ever was one."""
        stored = self._reader.get(CONFIG_MAPS, CONFIG_MAP, self._namespace)
        if stored is not None and resource_version_of(stored) != self._version:
            self._last_valid.offer(stored.get("data") or {})
            self._version = resource_version_of(stored)
        return self._last_valid.config

    @property
    def problem(self) -> str:
        """Returns what is wrong with the newest one, or with there being none."""
        missing = f"there is no ConfigMap {CONFIG_MAP} in namespace {self._namespace}"
        return str(self._last_valid.error or missing)

    def required(self) -> Config:
        """Raises `Wait` while there never was a good one: nothing can be reconciled then."""
        config = self.in_force()
        if config is None:
            raise Wait(self.problem, RETRY)
        return config

    def __call__(self) -> Config:
        """Raises `InternalError` when there never was a good one: nothing can be decided then."""
        config = self.in_force()
        if config is None:
            raise InternalError(self.problem)
        return config
