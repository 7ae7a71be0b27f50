"""The configuration of endpoint pickers whose users bring none: scorers and their weights as llm-d recommends them."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.api.llm.v1alpha2 import LLMInferenceServiceSpec
from isvc.kube.objects import Object

API_VERSION, KIND = "llm-d.ai/v1alpha1", "EndpointPickerConfig"
_LORA = "lora-affinity-scorer"
_LORA_WEIGHT = 4


def default_config(spec: LLMInferenceServiceSpec) -> Object:
    """Disaggregated services always prefill apart; adapters make pods that have them loaded more attractive."""
    has_adapters = spec.model.lora is not None and bool(spec.model.lora.adapters)
    plugins, profiles = _disaggregated_parts() if spec.prefill is not None else _single_parts()
    if has_adapters:
        plugins = [*plugins, {"type": _LORA}]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "plugins": plugins,
        "schedulingProfiles": [_profile(name, entries, has_adapters) for name, entries in profiles.items()],
    }


_Entry = tuple[str, int | None]
_Parts = tuple[list[Object], dict[str, list[_Entry]]]
_PICKER: _Entry = ("max-score-picker", None)


def _single_parts() -> _Parts:
    scorers: list[_Entry] = [
        ("queue-scorer", 2),
        ("kv-cache-utilization-scorer", 2),
        ("prefix-cache-scorer", 3),
        ("no-hit-lru-scorer", 2),
    ]
    types = ("single-profile-handler", *(name for name, _ in scorers), "max-score-picker")
    return _plugins(types), {"default": [*scorers, _PICKER]}


def _disaggregated_parts() -> _Parts:
    decider = "always-disagg-pd-decider"
    handler = {"type": "disagg-profile-handler", "parameters": {"deciders": {"prefill": decider}}}
    scorers = ("queue-scorer", "kv-cache-utilization-scorer", "active-request-scorer", "prefix-cache-scorer")
    types = ("disagg-headers-handler", "prefill-filter", "decode-filter", *scorers, "max-score-picker", decider)
    prefill: list[_Entry] = [("prefix-cache-scorer", 3), ("queue-scorer", 2), ("kv-cache-utilization-scorer", 2)]
    # How many requests a decoding pod has open says more about it than its queue.
    decode: list[_Entry] = [("active-request-scorer", 2), ("prefix-cache-scorer", 3)]
    return [*_plugins(types), handler], {
        "prefill": [("prefill-filter", None), *prefill, _PICKER],
        "decode": [("decode-filter", None), *decode, _PICKER],
    }


def _plugins(types: Iterable[str]) -> list[Object]:
    return [{"type": each} for each in types]


def _profile(name: str, entries: list[_Entry], has_adapters: bool) -> Object:
    """The scorer for adapters is the first scorer: a filter, which has no weight, goes before it."""
    if has_adapters:
        first = 0 if entries[0][1] is not None else 1
        entries = [*entries[:first], (_LORA, _LORA_WEIGHT), *entries[first:]]
    return {"name": name, "plugins": [_reference(*entry) for entry in entries]}


def _reference(plugin: str, weight: int | None) -> Object:
    return {"pluginRef": plugin} if weight is None else {"pluginRef": plugin, "weight": weight}
