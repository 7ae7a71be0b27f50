"""What triggers a reconcile of an LLMInferenceServiceConfig, and how its controller is built."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.config.kind import make_kind
from isvc.controllers.llmisvc.usage import CONFIG_INDEX, config_indexer, configs_of
from isvc.engine.reconciler import Reconciler
from isvc.kube.objects import Key, Object, dig, namespace_of
from isvc.serving.environment import Environment
from isvc.serving.llm.presets import preset_names
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch
from isvc.toolkit.reads import Read

WORKERS = 4
TOGETHER = 1.0  # services often come in numbers, and each of them concerns every preset


def controller(context: Context, environment: Environment) -> Controller:
    cache = context.cache
    reconciler = Reconciler(make_kind(cache, environment), context)

    def configs(service: Object) -> Iterable[Key]:
        names = {*configs_of(service, environment.preset_prefix), *preset_names(environment.preset_prefix)}
        for namespace in {namespace_of(service), environment.system_namespace}:
            for key in cache.all_keys(LLM_INFERENCE_SERVICE_CONFIGS, namespace):
                if key.name in names:
                    yield key

    def usage_changed(before: Object | None, after: Object | None) -> bool:
        if before is None or after is None:
            return True
        if dig(before, "status", "appliedConfigs") != dig(after, "status", "appliedConfigs"):
            return True
        return list(configs_of(before, environment.preset_prefix)) != list(configs_of(after, environment.preset_prefix))

    watches = (
        Watch(LLM_INFERENCE_SERVICE_CONFIGS),
        Watch(LLM_INFERENCE_SERVICES, to=configs, when=usage_changed, delay=TOGETHER),
    )
    return Controller(
        "llminferenceserviceconfig",
        reconciler.reconcile,
        watches,
        workers=WORKERS,
        reads=reads(environment),
        ignore_own_writes_for=LLM_INFERENCE_SERVICE_CONFIGS,
        clock=context.clock,
    )


def reads(environment: Environment) -> tuple[Read, ...]:
    indexers = {CONFIG_INDEX: config_indexer(environment.preset_prefix)}
    return (Read(LLM_INFERENCE_SERVICES, indexers=indexers),)
