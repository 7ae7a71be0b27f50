"""Rewrites configurations of older endpoint pickers for the version that runs, rule by rule.

An older program refuses newer names and a newer one the older, so each rule has a first version.
Configurations are changed in place.
"""

from __future__ import annotations

import math
from typing import Any

from isvc.controllers.llmisvc.scheduler.config import plugins
from isvc.controllers.llmisvc.scheduler.config.defaults import API_VERSION
from isvc.controllers.llmisvc.scheduler.config.plugins import PRECISE_PREFIX_SCORER, PREFIX_SCORER, TOKEN_PRODUCER
from isvc.controllers.llmisvc.scheduler.config.version import Version
from isvc.kube.objects import Object, deep_copy, dig

FIRST_MIGRATED = Version(0, 7, 0)
RENAMED_METRICS = Version(0, 8, 0)
TOKENIZER_APART = Version(0, 9, 0)
_OLD_API_VERSION = "inference.networking.x-k8s.io/v1alpha1"
_METRICS, _METRICS_BEFORE_RENAME = "core-metrics-extractor", "model-server-protocol-metrics"
_PRECISE_PREFIX_PRODUCER = "precise-prefix-cache-producer"
_ALWAYS_DECIDER, _PREFIX_DECIDER = "always-disagg-pd-decider", "prefix-based-pd-decider"
_LETTERS_PER_TOKEN = 4
_TOKENIZER_MODEL = "/mnt/models/base"
_METRIC_SPECS = {
    "total-queued-requests-metric": "queuedRequestsSpec",
    "total-running-requests-metric": "runningRequestsSpec",
    "kv-cache-usage-percentage-metric": "kvUsageSpec",
    "lora-info-metric": "loraSpec",
    "cache-info-metric": "cacheInfoSpec",
}
METRIC_FLAGS = frozenset(_METRIC_SPECS)


def migrate(config: Object, version: Version, metrics: dict[str, str], tokenizer_url: str | None) -> None:
    """Rewrites everything but what flags of the model server's metrics become.

    `metrics` are flags that became parameters. `tokenizer_url` is where the tokenizer answers, if there is one.
    """
    plugins.rename(config, "prefill-header-handler", "disagg-headers-handler")
    plugins.rename(config, "pd-profile-handler", "disagg-profile-handler")
    _name_deciders(config)
    for plugin in plugins.plugins(config):
        plugins.parameters(plugin).pop("hashBlockSize", None)
    if metrics and not plugins.has_type(config, _METRICS):
        plugins.add(config, _metrics_plugin(metrics))
    if version >= RENAMED_METRICS:
        plugins.rename(config, _METRICS_BEFORE_RENAME, _METRICS)
    if version >= TOKENIZER_APART:
        _strip_prefix_scorer(config)
        if config.get("apiVersion") == _OLD_API_VERSION:
            config["apiVersion"] = API_VERSION
        if tokenizer_url:
            _split_precise_prefix_scorer(config, tokenizer_url)
            _point_token_producer(config, tokenizer_url)


def is_current_but_for_api_version(before: Object | None, after: Object | None) -> bool:
    """Returns whether a configuration has the old apiVersion, and is otherwise what it would be rewritten to."""
    return before is not None and after == {**before, "apiVersion": API_VERSION} != before


def use_tokenizer_beside(config: Object) -> None:
    """Serves an endpoint picker whose pod has a tokenizer of its own, of versions that knew only this."""
    for plugin in plugins.of_type(config, PRECISE_PREFIX_SCORER):
        given = plugins.section(plugin, "parameters")
        indexer = plugins.section(given, "indexerConfig")
        pool = plugins.section(indexer, "tokenizersPoolConfig")
        pool["modelName"] = "base"
        plugins.section(pool, "uds")["socketFile"] = "/tmp/tokenizer/tokenizer-uds.socket"  # noqa: S108
        if "tokenProcessorConfig" in indexer:
            given.setdefault("tokenProcessorConfig", deep_copy(indexer["tokenProcessorConfig"]))
    for plugin in plugins.of_type(config, PREFIX_SCORER):
        given = plugins.parameters(plugin)
        if "blockSize" in given:
            given.setdefault("blockSizeTokens", given["blockSize"])


# -- disaggregation -------------------------------------------------------------------------------------------------


def _name_deciders(config: Object) -> None:
    """A threshold for prefilling apart becomes a plugin of its own, declared before the handler that refers to it."""
    needed: list[Object] = []
    for handler in plugins.of_type(config, "disagg-profile-handler"):
        given = plugins.parameters(handler)
        if "deciders" in given or not {"deciderPluginName", "threshold"} & given.keys():
            continue
        threshold, name = given.pop("threshold", None), given.pop("deciderPluginName", None)
        if name is None:
            decider = _decider(threshold)
            name = decider["type"]
            needed.append(decider)
        given["deciders"] = {"prefill": name}
    missing = [decider for decider in needed if not plugins.has_type(config, decider["type"])]
    if missing:
        declared = config["plugins"]
        first = next(i for i, each in enumerate(declared) if dig(each, "type") == "disagg-profile-handler")
        config["plugins"] = [*declared[:first], *_distinct(missing), *declared[first:]]


def _decider(threshold: Any) -> Object:
    letters = _number(threshold)
    if letters == 0:
        return {"type": _ALWAYS_DECIDER}
    tokens = 1 if letters is None else max(math.ceil(letters / _LETTERS_PER_TOKEN), 1)
    return {"type": _PREFIX_DECIDER, "parameters": {"nonCachedTokens": tokens}}


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _distinct(declared: list[Object]) -> list[Object]:
    return list({plugin["type"]: plugin for plugin in reversed(declared)}.values())[::-1]


# -- metrics --------------------------------------------------------------------------------------------------------


def _metrics_plugin(flags: dict[str, str]) -> Object:
    engine = {"name": "vllm"} | {field: flags[flag] for flag, field in _METRIC_SPECS.items() if flag in flags}
    return {
        "name": _METRICS_BEFORE_RENAME,
        "type": _METRICS_BEFORE_RENAME,
        "parameters": {
            "engineLabelKey": "inference.networking.k8s.io/engine-type",
            "defaultEngine": "vllm",
            "engineConfigs": [engine],
        },
    }


# -- prefixes and tokens --------------------------------------------------------------------------------------------


def _strip_prefix_scorer(config: Object) -> None:
    """The only parameter that newer versions of the scorer accept is the name of the plugin that finds matches."""
    for plugin in plugins.of_type(config, PREFIX_SCORER):
        if not isinstance(plugin.get("parameters"), dict):
            continue
        accepted = {key: value for key, value in plugin["parameters"].items() if key == "prefixMatchInfoProducerName"}
        if accepted:
            plugin["parameters"] = accepted
        else:
            del plugin["parameters"]


def _split_precise_prefix_scorer(config: Object, tokenizer_url: str) -> None:
    """One plugin that did all becomes three: tokens, matches, scores. Its parameters go to the second."""
    old = next(plugins.of_type(config, PRECISE_PREFIX_SCORER), None)
    if old is None:
        return
    declared = config["plugins"]
    index = next(i for i, each in enumerate(declared) if each is old)
    rest = [each for each in declared if dig(each, "type") not in (PRECISE_PREFIX_SCORER, PREFIX_SCORER)]
    producer: Object = {"type": _PRECISE_PREFIX_PRODUCER}
    if given := _producer_parameters(plugins.parameters(old)):
        producer["parameters"] = given
    tokens = {"modelName": _TOKENIZER_MODEL, "vllm": {"url": tokenizer_url}}
    pipeline = [
        {"type": TOKEN_PRODUCER, "parameters": tokens},
        producer,
        {"type": PREFIX_SCORER, "parameters": {"prefixMatchInfoProducerName": _PRECISE_PREFIX_PRODUCER}},
    ]
    config["plugins"] = [*rest[:index], *pipeline, *rest[index:]]
    for references in plugins.profiles(config):
        _refer_to_prefix_scorer_once(references)


def _producer_parameters(given: Object) -> Object:
    """Tokens are made elsewhere; how they are processed moved up a level."""
    indexer = given.get("indexerConfig")
    moved = {key: value for key, value in given.items() if key != "indexerConfig"}
    if isinstance(indexer, dict):
        if "tokenProcessorConfig" in indexer:
            moved.setdefault("tokenProcessorConfig", indexer["tokenProcessorConfig"])
        rest = {key: indexer[key] for key in indexer if key not in ("tokenizersPoolConfig", "tokenProcessorConfig")}
        if rest:
            moved["indexerConfig"] = rest
    return moved


def _refer_to_prefix_scorer_once(references: list[Any]) -> None:
    seen = False
    distinct = []
    for reference in references:
        if dig(reference, "pluginRef") == PRECISE_PREFIX_SCORER:
            reference["pluginRef"] = PREFIX_SCORER
        if dig(reference, "pluginRef") == PREFIX_SCORER:
            if seen:
                continue
            seen = True
        distinct.append(reference)
    references[:] = distinct


def _point_token_producer(config: Object, tokenizer_url: str) -> None:
    for plugin in plugins.of_type(config, TOKEN_PRODUCER):
        given = plugins.section(plugin, "parameters")
        given.setdefault("modelName", _TOKENIZER_MODEL)
        plugins.section(given, "vllm").setdefault("url", tokenizer_url)
