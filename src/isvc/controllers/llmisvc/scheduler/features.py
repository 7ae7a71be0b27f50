"""What a scheduler's configuration asks for beside the endpoint picker itself."""

from __future__ import annotations

from isvc.controllers.llmisvc.scheduler.config import plugins
from isvc.controllers.llmisvc.scheduler.config.source import given_config
from isvc.kube.objects import Object, dig


def wants_tokenizer(spec: Object) -> bool:
    """Whether the service asks for a tokenizer, or for a plugin that cannot do without one."""
    scheduler = dig(spec, "router", "scheduler")
    if scheduler is None:
        return False
    wanting = (plugins.TOKEN_PRODUCER, plugins.PRECISE_PREFIX_SCORER)
    return scheduler.get("tokenizer") is not None or plugins.has_type(given_config(spec), *wanting)


def wants_latency_predictor(spec: Object) -> bool:
    return plugins.has_type(given_config(spec), plugins.LATENCY_PRODUCER)


def uses_precise_prefix_scorer(spec: Object) -> bool:
    """Whether the configuration has the plugin that was split in three."""
    return plugins.has_type(given_config(spec), plugins.PRECISE_PREFIX_SCORER)
