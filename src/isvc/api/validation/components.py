"""Validates what predictor, transformer and explainer have in common."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.api.formats import FRAMEWORKS
from isvc.api.implementations import Component, Implementation, containers_of, env_value, implementations
from isvc.api.inferenceservice import ExplainerSpec, PredictorSpec
from isvc.api.protocols import PROTOCOL_ENV, Protocol
from isvc.api.validation import Problem
from isvc.api.validation.containers import blocked_env, blocked_env_of
from isvc.api.validation.frameworks import framework_problems
from isvc.api.validation.scaling import extension


def component_problems(component: Component, path: str) -> Iterator[Problem]:
    """Checks that there is exactly one implementation, good by itself, and sound settings around it."""
    chosen = implementations(component)
    if len(chosen) != 1:
        yield _not_one(component, chosen, path)
    elif isinstance(component, PredictorSpec):
        yield from _implementation(component, chosen[0], path)
    yield from extension(component, path)


def _not_one(component: Component, chosen: list[Implementation], path: str) -> Problem:
    if isinstance(component, PredictorSpec):
        wanted = f"one of model, {', '.join(FRAMEWORKS)}, or containers"
    else:
        wanted = "art or containers" if isinstance(component, ExplainerSpec) else "containers"
    got = " and ".join(each.field for each in chosen) or "none"
    return Problem(path, f"needs exactly {wanted}; got {got}")


def _implementation(predictor: PredictorSpec, chosen: Implementation, path: str) -> Iterator[Problem]:
    if chosen.field == "containers":
        container = containers_of(predictor.pod)[0]
        protocol = env_value(container, PROTOCOL_ENV)
        if protocol is not None and protocol not in (Protocol.V1, Protocol.V2):
            yield Problem(f"{path}.containers[0].env", f"{PROTOCOL_ENV} must be v1 or v2, got {protocol!r}")
    elif chosen.field != "model":
        yield from framework_problems(chosen.field, getattr(predictor, chosen.field), f"{path}.{chosen.field}")


def blocked_variables(component: Component, path: str) -> Iterator[Problem]:
    for field in ("containers", "initContainers"):
        yield from blocked_env(containers_of(component.pod, field), f"{path}.{field}")
    if isinstance(component, PredictorSpec):
        for name in ("model", *FRAMEWORKS):
            if (spec := getattr(component, name)) is not None:
                yield from blocked_env_of(spec.container, f"{path}.{name}")
        if component.worker_spec is not None:
            for field in ("containers", "initContainers"):
                yield from blocked_env(containers_of(component.worker_spec.pod, field), f"{path}.workerSpec.{field}")
    elif isinstance(component, ExplainerSpec) and component.art is not None:
        yield from blocked_env_of(component.art.container, f"{path}.art")
