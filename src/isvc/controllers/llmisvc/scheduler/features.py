"""What a scheduler's configuration asks for beside the endpoint picker itself."""

from __future__ import annotations

from isvc.api.llm.v1alpha2 import SchedulerSpec
from isvc.controllers.llmisvc.scheduler.config import plugins
from isvc.controllers.llmisvc.scheduler.config.source import given_config


def wants_tokenizer(scheduler: SchedulerSpec | None) -> bool:
    """Returns whether the service asks for a tokenizer, or for a plugin that cannot do without one."""
    if scheduler is None:
        return False
    wanting = (plugins.TOKEN_PRODUCER, plugins.PRECISE_PREFIX_SCORER)
    return scheduler.tokenizer is not None or plugins.has_type(given_config(scheduler), *wanting)


def has_tokenizer(scheduler: SchedulerSpec | None) -> bool:
    """Returns whether a merged spec has a tokenizer apart from the endpoint picker."""
    return scheduler is not None and scheduler.tokenizer is not None


def wants_latency_predictor(scheduler: SchedulerSpec | None) -> bool:
    return scheduler is not None and plugins.has_type(given_config(scheduler), plugins.LATENCY_PRODUCER)


def uses_precise_prefix_scorer(scheduler: SchedulerSpec | None) -> bool:
    """Returns whether the configuration has the plugin that was split in three."""
    return scheduler is not None and plugins.has_type(given_config(scheduler), plugins.PRECISE_PREFIX_SCORER)
