"""Validates LLMInferenceServices and LLMInferenceServiceConfigs, in either version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from isvc.api.annotations import DEVICE_CLASS, DEVICE_CONTAINER, DEVICE_COUNT, DEVICE_SELECTOR
from isvc.api.completion import complete
from isvc.api.llm import v1alpha1
from isvc.api.llm.conversion import OLD, to_v1alpha2
from isvc.api.llm.v1alpha2 import LLMInferenceService, LLMInferenceServiceConfig, LoRASpec, RouterSpec
from isvc.api.llm.workload import ParallelismSpec, WorkloadSpec
from isvc.api.validation import GOOD, Problem, Verdict, is_exempt
from isvc.api.validation.llm_workload import workload_problems
from isvc.api.validation.storage import confidential_warnings, resource_id
from isvc.kube.names import DNS_LABEL, DNS_SUBDOMAIN
from isvc.kube.objects import Object

_ROUTER = "spec.router"


def validate_llm_service(new: Object, old: Object | None = None) -> Verdict:
    """Judges whether a service may be stored. Raises `DecodeError` where it is not even of its types."""
    is_old_version = new.get("apiVersion") == OLD
    new = complete(new, v1alpha1.LLMInferenceService if is_old_version else LLMInferenceService)
    service = _decode(new)
    if is_exempt(old, new):
        return GOOD
    problems = list(_problems(service, is_old_version))
    if old is not None:
        problems += _changes(service, _decode(old))
    model = service.spec.model
    enabled = model.confidential is not None and model.confidential.enabled
    return Verdict.of(problems, [*confidential_warnings(enabled, model.uri), *_parent_warnings(service.spec.router)])


def validate_llm_config(new: Object, old: Object | None = None) -> Verdict:
    is_old_version = new.get("apiVersion") == OLD
    new = complete(new, v1alpha1.LLMInferenceServiceConfig if is_old_version else LLMInferenceServiceConfig)
    config = LLMInferenceServiceConfig.decode(to_v1alpha2(new) if is_old_version else new)
    if is_exempt(old, new):
        return GOOD
    return Verdict.of(_config_problems(config))


def _decode(obj: Object) -> LLMInferenceService:
    return LLMInferenceService.decode(to_v1alpha2(obj) if obj.get("apiVersion") == OLD else obj)


def _config_problems(config: LLMInferenceServiceConfig) -> Iterator[Problem]:
    if config.spec.base_refs:
        yield Problem(
            "spec.baseRefs",
            "is not a permitted field in LLMInferenceServiceConfig: recursive refs are not supported; remove it",
        )
    yield from _scheduler_replicas(config.spec.router)


def _problems(service: LLMInferenceService, is_old_version: bool) -> Iterator[Problem]:
    spec = service.spec
    if spec.router is not None:
        yield from _routes(spec.router, is_old_version)
        yield from _traffic(spec.router)
        yield from _scheduler_replicas(spec.router)
        yield from _scheduler_config(spec.router)
    yield from workload_problems(spec, "spec")
    if spec.prefill is not None:
        yield from workload_problems(spec.prefill, "spec.prefill")
        yield from _same_scaling(spec, spec.prefill)
    if spec.model.lora is not None:
        yield from _lora(spec.model.lora, spec.model.name or service.metadata.name)
    yield from _devices(service.metadata.annotations)
    if spec.model.confidential is not None and spec.model.confidential.enabled:
        yield from resource_id(spec.model.confidential.resource_id, "spec.model")


def _routes(router: RouterSpec, is_old_version: bool) -> Iterator[Problem]:
    http = router.route.http if router.route is not None else None
    if http is None:
        return
    path = f"{_ROUTER}.route.http"
    if http.refs and http.spec is not None:
        yield Problem(path, "unsupported configuration: cannot use both custom HTTPRoute refs and an inline route spec")
    if http.refs and router.gateway is not None and not router.gateway.refs:
        yield Problem(
            f"{path}.refs",
            f"custom HTTP routes cannot be used with a managed gateway; remove them, or set {_ROUTER}.gateway.refs",
        )
    if _parents(router) and (is_old_version or not _parents_match(router)):
        yield Problem(
            f"{path}.spec.parentRefs",
            f"parentRefs conflict with custom gateway refs ({_ROUTER}.gateway.refs); leave out what follows from them",
        )


def _parents(router: RouterSpec) -> list[Object]:
    """Returns parents that a route names although its gateways are named too."""
    http = router.route.http if router.route is not None else None
    if http is None or http.spec is None or router.gateway is None or not router.gateway.refs:
        return []
    return http.spec.get("parentRefs") or []


def _parents_match(router: RouterSpec) -> bool:
    parents = sorted(
        (each.get("namespace") or "", each.get("name") or "", each.get("sectionName") or "")
        for each in _parents(router)
    )
    refs = router.gateway.refs if router.gateway is not None else []
    return parents == sorted((each.namespace, each.name, each.section_name or "") for each in refs)


def _parent_warnings(router: RouterSpec | None) -> Iterator[str]:
    if router is not None and _parents(router) and _parents_match(router):
        yield f"{_ROUTER}.route.http.spec.parentRefs can be left out: it is derived from {_ROUTER}.gateway.refs"


def _traffic(router: RouterSpec) -> Iterator[Problem]:
    route = router.route
    if route is None or (route.group is None and route.weight is None):
        return
    path = f"{_ROUTER}.route"
    if router.ingress is not None:
        yield Problem(f"{path}.group", "traffic splitting requires Gateway API routing; remove router.ingress")
    elif route.group is None:
        yield Problem(f"{path}.group", "weight requires group")
    elif route.weight is None:
        yield Problem(f"{path}.weight", "group requires weight")
    elif route.http is not None and route.http.refs:
        yield Problem(
            f"{path}.group", "traffic splitting cannot be used with custom HTTPRoute refs; remove route.http.refs"
        )


def _scheduler_replicas(router: RouterSpec | None) -> Iterator[Problem]:
    scheduler = router.scheduler if router is not None else None
    if scheduler is not None and scheduler.replicas is not None and scheduler.replicas <= 0:
        yield Problem(
            f"{_ROUTER}.scheduler.replicas", f"scheduler replicas must be greater than zero, got {scheduler.replicas}"
        )


def _scheduler_config(router: RouterSpec) -> Iterator[Problem]:
    config = router.scheduler.config if router.scheduler is not None else None
    if config is None:
        return
    path = f"{_ROUTER}.scheduler.config"
    if config.inline is None and config.ref is None:
        yield Problem(path, "either inline or ref is required")
    if config.inline is not None and config.ref is not None:
        yield Problem(path, "both inline and ref are set, either specify inline or ref")
    if config.inline is not None and not config.inline:
        yield Problem(f"{path}.inline", "inline configuration is invalid: it must not be empty")
    if config.ref is not None and not config.ref.get("name"):
        yield Problem(f"{path}.ref.name", "name is empty")


def _same_scaling(decode: WorkloadSpec, prefill: WorkloadSpec) -> Iterator[Problem]:
    """Checks that two workloads of one service follow one autoscaler: of two, neither would know of the other."""
    if decode.scaling is None or prefill.scaling is None:
        return
    ours, theirs = decode.scaling, prefill.scaling
    if (ours.keda is None) != (theirs.keda is None):
        yield Problem("spec.prefill.scaling", "decode and prefill must use the same scaling mode, wva or keda")
    elif ours.wva is not None and theirs.wva is not None and (ours.wva.hpa is None) != (theirs.wva.hpa is None):
        yield Problem("spec.prefill.scaling.wva", "decode and prefill must use the same actuator backend, hpa or keda")


def _lora(lora: LoRASpec, base: str) -> Iterator[Problem]:
    path = "spec.model.lora"
    for field, value in (
        ("maxRank", lora.max_rank),
        ("maxAdapters", lora.max_adapters),
        ("maxCpuAdapters", lora.max_cpu_adapters),
    ):
        if value is not None and value < 1:
            yield Problem(f"{path}.{field}", f"must be at least 1, got {value}")
    names: dict[str, int] = {}
    for index, adapter in enumerate(lora.adapters):
        where = f"{path}.adapters[{index}].name"
        if not adapter.name:
            yield Problem(where, "adapter name is required")
        elif adapter.name in (".", ".."):
            yield Problem(where, 'adapter name must not be "." or ".." (path traversal risk)')
        elif adapter.name in names:
            yield Problem(where, f"duplicate name {adapter.name!r} (same as adapters[{names[adapter.name]}])")
        elif adapter.name == base:
            yield Problem(where, f'adapter name must differ from base model name "{base}"')
        names.setdefault(adapter.name or "", index)


def _devices(annotations: Mapping[str, str]) -> Iterator[Problem]:
    """Checks annotations that ask for devices."""
    path = "metadata.annotations[{}]"
    others = [key for key in (DEVICE_COUNT, DEVICE_SELECTOR, DEVICE_CONTAINER) if key in annotations]
    chosen = annotations.get(DEVICE_CLASS)
    if chosen is None and others:
        yield Problem(path.format(DEVICE_CLASS), f"is required to enable managed DRA when {', '.join(others)} is set")
    elif chosen is not None and (not DNS_SUBDOMAIN.fullmatch(chosen.strip()) or len(chosen.strip()) > 253):
        yield Problem(path.format(DEVICE_CLASS), f"must be the name of a device class, got {chosen!r}")
    count = annotations.get(DEVICE_COUNT, "").strip()
    if count and not (re.fullmatch(r"[+-]?\d{1,18}", count, re.ASCII) and int(count) >= 1):
        yield Problem(path.format(DEVICE_COUNT), f"must be a number of at least 1, got {count!r}")
    if DEVICE_SELECTOR in annotations and not annotations[DEVICE_SELECTOR].strip():
        yield Problem(path.format(DEVICE_SELECTOR), "must hold at least one CEL expression")
    container = annotations.get(DEVICE_CONTAINER)
    if container is not None and (not DNS_LABEL.fullmatch(container.strip()) or len(container.strip()) > 63):
        yield Problem(path.format(DEVICE_CONTAINER), f"must be the name of a container, got {container!r}")


def _changes(new: LLMInferenceService, old: LLMInferenceService) -> Iterator[Problem]:
    pairs = [("spec.parallelism", old.spec.parallelism, new.spec.parallelism)]
    if old.spec.prefill is not None and new.spec.prefill is not None:
        pairs.append(("spec.prefill.parallelism", old.spec.prefill.parallelism, new.spec.prefill.parallelism))
    for path, before, after in pairs:
        was, now = _size(before), _size(after)
        if was != now:
            yield Problem(path, f"total parallelism size is immutable, previous size {was}, got {now}")


def _size(parallelism: ParallelismSpec | None) -> int:
    return (parallelism.size if parallelism is not None else None) or 1
