"""Says once what is wrong with the configuration, when it changes: in the log, and as a metric that alerts look at.

Controllers and webhooks go on with the last good one and say nothing of it. Where there has been none they wait, and
while there is none, nothing new is begun.
"""

from __future__ import annotations

import logging

from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.config.configmap import CONFIG_MAP, Config, ConfigError, unknown_keys
from isvc.serving.config.current import settings_changed
from isvc.toolkit.cache import Cache
from isvc.toolkit.metrics import Metrics

log = logging.getLogger(__name__)


def watch_configuration(cache: Cache, metrics: Metrics, namespace: str) -> None:
    """Reports every change of the ConfigMap."""
    cache.subscribe(CONFIG_MAPS, Report(metrics, namespace))


class Report:
    def __init__(self, metrics: Metrics, namespace: str) -> None:
        self._metrics, self._namespace = metrics, namespace
        self._in_force = False  # whether there has been a good one

    def __call__(self, before: Object | None, after: Object | None) -> None:
        if not settings_changed(self._namespace, before, after):
            return
        try:
            if after is None:
                raise ConfigError(CONFIG_MAP, "", f"is gone from namespace {self._namespace}")
            Config.parse(after.get("data") or {})
        except ConfigError as error:
            self._metrics.configuration_valid.set(0)
            log.error("%s; %s", error, self._consequence(is_gone=after is None))
            return
        self._metrics.configuration_valid.set(1)
        self._in_force = True
        strange = unknown_keys(after.get("data") or {})
        if strange:
            log.warning("%s: nobody knows %s", CONFIG_MAP, ", ".join(strange))
        elif before is not None:
            log.info("%s changed, and is in force", CONFIG_MAP)

    def _consequence(self, *, is_gone: bool) -> str:
        if not self._in_force:
            return "nothing is done before it is mended"
        return "what was last good stays in force" + (", and nothing new is begun" if is_gone else "")
