"""The configuration of endpoint pickers whose users bring none: scorers and their weights as llm-d recommends them."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.kube.objects import Object, dig

API_VERSION, KIND = "llm-d.ai/v1alpha1", "EndpointPickerConfig"
_LORA = "lora-affinity-scorer"
_LORA_WEIGHT = 4


def default_config(spec: Object) -> Object:
    """Disaggregated services always prefill apart; adapters make pods that have them loaded more attractive."""
    has_adapters = bool(dig(spec, "model", "lora", "adapters"))
    plugins, profiles = _disaggregated() if spec.get("prefill") is not None else _single()
    if has_adapters:
        plugins = [*plugins, {"type": _LORA}]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "plugins": plugins,
        "schedulingProfiles": [_profile(name, scorers, has_adapters) for name, scorers in profiles],
    }


_Scorers = tuple[tuple[str, int | None], ...]
_Parts = tuple[list[Object], tuple[tuple[str, _Scorers], ...]]


def _single() -> _Parts:
    scorers = (("queue-scorer", 2), ("kv-cache-utilization-scorer", 2), ("prefix-cache-scorer", 3))
    scorers += (("no-hit-lru-scorer", 2),)
    types = ("single-profile-handler", *(name for name, _ in scorers), "max-score-picker")
    return _plugins(types), (("default", (*scorers, ("max-score-picker", None))),)


def _disaggregated() -> _Parts:
    decider = "always-disagg-pd-decider"
    types = ("disagg-headers-handler", "prefill-filter", "decode-filter", "queue-scorer", "kv-cache-utilization-scorer")
    types += ("active-request-scorer", "prefix-cache-scorer", "max-score-picker", decider)
    handler = {"type": "disagg-profile-handler", "parameters": {"deciders": {"prefill": decider}}}
    prefill: _Scorers = (("prefill-filter", None), ("prefix-cache-scorer", 3), ("queue-scorer", 2))
    prefill += (("kv-cache-utilization-scorer", 2), ("max-score-picker", None))
    # How many requests a decoding pod has open says more about it than its queue.
    decode: _Scorers = (("decode-filter", None), ("active-request-scorer", 2), ("prefix-cache-scorer", 3))
    decode += (("max-score-picker", None),)
    return [*_plugins(types), handler], (("prefill", prefill), ("decode", decode))


def _plugins(types: Iterable[str]) -> list[Object]:
    return [{"type": each} for each in types]


def _profile(name: str, scorers: _Scorers, has_adapters: bool) -> Object:
    """Filters come first; the scorer for adapters follows them."""
    entries = list(scorers)
    if has_adapters:
        entries.insert(0 if entries[0][1] is not None else 1, (_LORA, _LORA_WEIGHT))
    return {"name": name, "plugins": [_reference(*entry) for entry in entries]}


def _reference(plugin: str, weight: int | None) -> Object:
    return {"pluginRef": plugin} if weight is None else {"pluginRef": plugin, "weight": weight}
