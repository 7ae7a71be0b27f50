"""Says once what is wrong with the configuration, when it changes: in the log, and as a metric that alerts look at.

Controllers and webhooks go on with the last good one and say nothing of it.
"""

from __future__ import annotations

import logging
from functools import partial

from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.config.configmap import CONFIG_MAP, Config, ConfigError, unknown_keys
from isvc.serving.config.current import settings_changed
from isvc.toolkit.cache import Cache
from isvc.toolkit.metrics import Metrics

log = logging.getLogger(__name__)


def watch_configuration(cache: Cache, metrics: Metrics, namespace: str) -> None:
    """Reports every change of the ConfigMap."""
    cache.subscribe(CONFIG_MAPS, partial(report, metrics, namespace))


def report(metrics: Metrics, namespace: str, before: Object | None, after: Object | None) -> None:
    if not settings_changed(namespace, before, after):
        return
    try:
        if after is None:
            raise ConfigError(CONFIG_MAP, "", f"is gone from namespace {namespace}")
        Config.parse(after.get("data") or {})
    except ConfigError as error:
        metrics.configuration_valid.set(0)
        log.error("%s; what was last good stays in force", error)
        return
    metrics.configuration_valid.set(1)
    strange = unknown_keys(after.get("data") or {})
    if strange:
        log.warning("%s: nobody knows %s", CONFIG_MAP, ", ".join(strange))
    elif before is not None:
        log.info("%s changed, and is in force", CONFIG_MAP)
