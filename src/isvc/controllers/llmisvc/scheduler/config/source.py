"""Where an endpoint picker's configuration comes from."""

from __future__ import annotations

from typing import Any

from isvc.api.llm.v1alpha2 import LLMInferenceServiceSpec, SchedulerSpec
from isvc.controllers.llmisvc.scheduler.config import flags, text
from isvc.controllers.llmisvc.scheduler.config.defaults import default_config
from isvc.kube import gojson
from isvc.kube.objects import Object


def config_arguments(spec: LLMInferenceServiceSpec, scheduler: SchedulerSpec, live_pod: Object) -> list[str]:
    """Returns the flag that hands over the configuration; none where the template has it.

    What the service says comes first, then what the running picker was given, so that upgrades change nothing; else
    there is a default.
    """
    if (inline := _inline(scheduler)) is not None:
        return ["--config-text", inline]
    if flags.config_flag(scheduler.template or {}) is not None:
        return []
    if (running := flags.config_flag(live_pod)) is not None:
        return list(running)
    return ["--config-text", "\n" + text.dump(default_config(spec), sort=False)]


def given_config(scheduler: SchedulerSpec) -> Any:
    """Returns the configuration as far as the service has it, in its field or in the arguments of its own template."""
    inline = scheduler.config.inline if scheduler.config else None
    if inline is None:
        inline = flags.config_text(scheduler.template or {})
    return text.load(inline) if isinstance(inline, str) else inline


def _inline(scheduler: SchedulerSpec) -> str | None:
    """An object becomes the JSON that Go would write; text, from a ConfigMap, stays as it is."""
    inline: Any = scheduler.config.inline if scheduler.config else None
    return inline if inline is None or isinstance(inline, str) else gojson.dumps(_sort(inline))


def _sort(value: Any) -> Any:
    if isinstance(value, dict):
        return gojson.sorted_map({key: _sort(inner) for key, inner in value.items()})
    return [_sort(item) for item in value] if isinstance(value, list) else value
