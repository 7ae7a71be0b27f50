"""What a service builds on: presets chosen by its shape, the configurations it refers to, and its own spec, in one.

A preset is a configuration of a well-known name. The one in the service's own namespace wins over the system's. The
names are pinned in the status when a service is first seen, so that an upgrade with another prefix leaves it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import orjson

from isvc.api import DecodeError
from isvc.api.codec import decode
from isvc.api.llm.v1alpha2 import LLMInferenceServiceSpec
from isvc.api.llm.workload import ParallelismSpec, WorkloadSpec
from isvc.api.resources import GROUP
from isvc.controllers.llmisvc.observed import AppliedConfig, Merged
from isvc.controllers.llmisvc.router.backends import with_backends
from isvc.controllers.llmisvc.scheduler.config.rewrite import TOKENIZER_CONTAINER
from isvc.controllers.llmisvc.scheduler.config.text import load
from isvc.controllers.llmisvc.scheduler.features import has_tokenizer, wants_latency_predictor, wants_tokenizer
from isvc.controllers.llmisvc.workload.lora import resolve_adapters
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.kube.patch import PatchError
from isvc.serving.environment import PRESET_PREFIX
from isvc.serving.llm import names
from isvc.serving.llm.labels import workload_selector
from isvc.serving.llm.merge import lay_over, merge_specs
from isvc.serving.llm.presets import PresetError, Settings, preset_names, render_preset
from isvc.serving.refused import Refused

SYSTEM_SCHEDULER_CONFIG: Final = "config-scheduler-"
SCHEDULER_CONFIG_KEY: Final = "epp"
ENDPOINT_PICKER_PORT: Final = 9002


class NotCombined(Refused):
    """The configurations cannot be combined; `reason` goes to the condition PresetsCombined."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where configurations come from. Both return None for what does not exist."""

    config: Callable[[str, str], Object | None]
    """An LLMInferenceServiceConfig by namespace and name."""
    config_map: Callable[[str, str], Object | None]
    """A ConfigMap by namespace and name."""
    system_namespace: str
    prefix: str = PRESET_PREFIX
    pinned: bool = True
    """Whether the names of presets stay what they were when a service was first seen."""


def pins(status: Object, sources: Sources) -> dict[str, str]:
    """Returns the status's annotations with the name of every preset, old names first."""
    annotations: dict[str, str] = status.get("annotations") or {}
    if not sources.pinned:
        return dict(annotations)
    today = _names_of_today(sources.prefix)
    return today | {key: value for key, value in annotations.items() if value or key not in today}


@cache
def _names_of_today(prefix: str) -> dict[str, str]:
    return {_pin(name, prefix): name for name in preset_names(prefix)}


def combine(raw: Object, settings: Settings, sources: Sources) -> Merged:
    """Raises `NotCombined`."""
    try:
        return _combine(raw, settings, sources)
    except (DecodeError, PatchError, PresetError, Refused) as error:
        if isinstance(error, NotCombined):
            raise
        raise NotCombined(str(error), reason="CombineBaseError") from error


def _combine(raw: Object, settings: Settings, sources: Sources) -> Merged:
    own: Object = raw.get("spec") or {}
    own = {**own, "model": own.get("model") or {}}
    referred = [_find(ref["name"], raw, sources) for ref in own.get("baseRefs") or ()]
    outline = decode(LLMInferenceServiceSpec, merge_specs(own, *(config.get("spec") or {} for config in referred)))
    own = {**own, "model": {**own["model"], "name": outline.model.name or name_of(raw)}}
    pinned = pins(raw.get("status") or {}, sources)
    found = {name: _look_up(name, raw, sources) for name in _preset_names_of(outline, pinned, sources)}
    lacking = frozenset(name for name, config in found.items() if not config and _is_beside(name, found, outline))
    chosen = [config or _find(name, raw, sources) for name, config in found.items() if name not in lacking]
    merged = lay_over(_merge(*(orjson.dumps(config.get("spec") or {}) for config in (*chosen, *referred))), own)
    rendered = _render(merged, {**raw, "spec": own}, settings)
    spec = with_backends(_with_defaults(rendered, merged, name_of(raw)), name_of(raw))
    spec, config_map = _with_scheduler_config(spec, raw, sources)
    applied = (
        *(AppliedConfig(name_of(config), namespace_of(config), "Preset") for config in chosen),
        *(AppliedConfig(name_of(config), namespace_of(config), "UserRef") for config in referred),
    )
    done = Merged.of(_with_picker_port(spec), applied, config_map, lacking)
    resolve_adapters(done.spec)  # raises where they cannot be
    return done


@lru_cache(maxsize=256)
def _merge(*specs: bytes) -> Object:
    """Merges configurations into one: few combinations of them serve many services."""
    return merge_specs(*map(orjson.loads, specs))


# -- which presets --------------------------------------------------------------------------------------------------


def _preset_names_of(outline: LLMInferenceServiceSpec, pinned: dict[str, str], sources: Sources) -> Iterator[str]:
    for preset in shape(outline):
        name = f"{sources.prefix}config-llm-{preset}"
        if preset == "router-route":  # it depends on the gateway's version, not on the service's
            yield name
        else:
            yield pinned.get(_pin(name, sources.prefix), name)


def _is_beside(name: str, found: Mapping[str, Object | None], outline: LLMInferenceServiceSpec) -> bool:
    """Returns whether a preset is the tokenizer's, which the scheduler's has beside it: KServe 0.20 knows no other."""
    pods = (dig(config, "spec", "router", "scheduler", "template", "containers") or () for config in found.values())
    is_there = any(each.get("name") == TOKENIZER_CONTAINER for containers in pods for each in containers)
    is_asked_for = has_tokenizer(outline.router.scheduler if outline.router else None)
    return is_there and not is_asked_for and name.endswith("config-llm-tokenizer")


def shape(spec: LLMInferenceServiceSpec) -> Iterator[str]:
    """Yields the presets that a service of this shape takes, weakest first."""
    scheduler = spec.router.scheduler if spec.router else None
    route = spec.router.route if spec.router else None
    if scheduler is not None:
        if not scheduler.users_pool:
            yield "scheduler"
        if wants_tokenizer(scheduler):
            yield "tokenizer"
    if wants_latency_predictor(scheduler):
        yield "scheduler-latency-predictor"
    if route is not None and not (route.http and route.http.refs):
        yield "router-route"
    if spec.tracing is not None:
        yield "tracing"
    if spec.prefill is not None:
        yield from _workload(spec.prefill, "prefill-")
    yield from _workload(spec, "decode-" if spec.prefill is not None else "")


def _workload(spec: WorkloadSpec, role: str) -> Iterator[str]:
    parallelism = spec.parallelism or ParallelismSpec()
    if spec.worker is None:
        yield f"{role}template"
    elif parallelism.is_data:
        yield f"{role}worker-data-parallel"
    elif parallelism.is_pipeline:
        yield f"{role}worker-pipeline-parallel"


def _pin(name: str, prefix: str) -> str:
    return f"{GROUP}/{name.removeprefix(prefix)}"


def _look_up(name: str, raw: Object, sources: Sources) -> Object | None:
    return sources.config(namespace_of(raw), name) or sources.config(sources.system_namespace, name)


def _find(name: str, raw: Object, sources: Sources) -> Object:
    if found := _look_up(name, raw, sources):
        return found
    where = " ".join((namespace_of(raw), sources.system_namespace))
    message = f'LLMInferenceServiceConfig "{name}" not found in namespaces [{where}]'
    raise NotCombined(message, reason="ConfigNotFound")


# -- what is filled in ----------------------------------------------------------------------------------------------


def _with_defaults(spec: Object, merged: Object, service: str) -> Object:
    """Returns the spec with its pool's selector and its scheduler's account, where what was merged says neither."""
    given, scheduler = dig(merged, "router", "scheduler"), dig(spec, "router", "scheduler")
    if given is None:
        return spec
    pool = dig(scheduler, "pool", "spec")
    if pool is not None and not dig(given, "pool", "spec", "selector", "matchLabels"):
        selector = {**(pool.get("selector") or {}), "matchLabels": workload_selector(service)}
        scheduler = {**scheduler, "pool": {**scheduler["pool"], "spec": {**pool, "selector": selector}}}
    template = scheduler.get("template")
    if template is not None and not dig(given, "template", "serviceAccountName"):
        account = {"serviceAccountName": names.scheduler_account(service)}
        scheduler = {**scheduler, "template": {**template, **account}}
    return _with_scheduler(spec, scheduler)


def _render(spec: Object, service: Object, settings: Settings) -> Object:
    """Returns the spec with its templates filled in.

    The model stands aside meanwhile: without it services of one shape have one template, which is parsed once.
    """
    metadata = {key: value for key, value in service["metadata"].items() if key != "managedFields"}
    model = spec["model"]
    aside = {key: model[key] for key in ("uri", "name") if key in model and "{{" not in model[key]}
    config = {"spec": {**spec, "model": {**model, **dict.fromkeys(aside, "")}}}
    rendered: Object = render_preset(config, {**service, "metadata": metadata}, settings)["spec"]
    return {**rendered, "model": {**rendered["model"], **aside}}


def _missing_scheduler_config(name: str, namespaces: list[str]) -> str:
    if len(namespaces) == 1:
        return f"there is no ConfigMap {name} in namespace {namespaces[0]}"
    places = ", ".join(f'"{namespace}"' for namespace in namespaces)
    return (
        f'failed to get scheduler config "{name}" from namespaces [{places}]: failed to get v1.ConfigMap'
        f' {namespaces[-1]}/{name} from API Server: configmaps "{name}" not found'
    )


def _with_scheduler_config(spec: Object, raw: Object, sources: Sources) -> tuple[Object, Key | None]:
    """Returns the spec with the text of the scheduler's configuration in place of the ConfigMap that it refers to."""
    scheduler = dig(spec, "router", "scheduler")
    reference = dig(scheduler or {}, "config", "ref")
    if scheduler is None or reference is None:
        return spec, None
    name, key = reference.get("name", ""), reference.get("key") or SCHEDULER_CONFIG_KEY
    namespaces = [namespace_of(raw)]
    if name.startswith(SYSTEM_SCHEDULER_CONFIG):
        namespaces.append(sources.system_namespace)
    found = next((each for each in (sources.config_map(place, name) for place in namespaces) if each), None)
    if found is None:
        raise Refused(_missing_scheduler_config(name, namespaces))
    text = (found.get("data") or {}).get(key)
    if text is None:
        raise Refused(f'ConfigMap {namespace_of(found)}/{name} doesn\'t have key "{key}" in data')
    if load(text) is None:
        raise Refused(f'key "{key}" of ConfigMap {namespace_of(found)}/{name} holds no YAML')
    inlined = {**scheduler, "config": {"inline": text}}
    return _with_scheduler(spec, inlined), Key.of(found)


def _with_picker_port(spec: Object) -> Object:
    """A pool that names a Service as its endpoint picker has to name a port; older configurations do not."""
    scheduler = dig(spec, "router", "scheduler")
    pool = dig(scheduler or {}, "pool", "spec")
    if scheduler is None or pool is None:
        return spec
    picker = pool.get("endpointPickerRef") or {}
    if dig(picker, "port", "number") or picker.get("kind", "") not in ("", "Service"):
        return spec
    picker = {**picker, "port": {"number": ENDPOINT_PICKER_PORT}}
    return _with_scheduler(
        spec, {**scheduler, "pool": {**scheduler["pool"], "spec": {**pool, "endpointPickerRef": picker}}}
    )


def _with_scheduler(spec: Object, scheduler: Object) -> Object:
    return {**spec, "router": {**spec["router"], "scheduler": scheduler}}


def storable(spec: Object) -> Object:
    """Returns the spec as the API server takes it: with the scheduler's configuration as an object, not as text."""
    scheduler = dig(spec, "router", "scheduler")
    text = dig(scheduler or {}, "config", "inline")
    if scheduler is None or not isinstance(text, str):
        return spec
    return _with_scheduler(spec, {**scheduler, "config": {"inline": load(text)}})
