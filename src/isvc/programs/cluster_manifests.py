"""Kinds and webhooks as a cluster gets them: the API server reaches the managers through their Services."""

from __future__ import annotations

from typing import Final

from isvc.api.crds import crds
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, LLM_INFERENCE_SERVICE_CONFIGS
from isvc.kube.objects import Object, name_of
from isvc.programs import isvc_manager, llmisvc_manager
from isvc.programs.program import Program
from isvc.programs.registration import ClientConfig, configurations, conversions

PART_OF_US: Final = {"app.kubernetes.io/part-of": "isvc"}
"""The labels of what ships."""
KEPT: Final = {"helm.sh/resource-policy": "keep"}
"""The annotations of what services need after the managers are uninstalled: kinds, runtimes, presets."""
_SHIPPED: Final = (CLUSTER_SERVING_RUNTIMES.plural, LLM_INFERENCE_SERVICE_CONFIGS.plural)
_NOT_WHEN_INSTALLED: Final = {
    "name": "not-when-installed",
    "expression": "request.operation == 'DELETE' || !has(object.metadata.labels) || "
    "!('app.kubernetes.io/part-of' in object.metadata.labels) || "
    "object.metadata.labels['app.kubernetes.io/part-of'] != 'isvc' || "
    "(request.operation == 'UPDATE' && object.spec != oldObject.spec)",
}
PROGRAMS: Final = (isvc_manager.PROGRAM, llmisvc_manager.PROGRAM)


def kinds(namespace: str) -> list[Object]:
    """The CRDs, described; those of several versions always with the webhook that converts them."""
    webhooks = {
        name: conversion
        for program in PROGRAMS
        for name, conversion in conversions(program.webhooks, _through_service(program, namespace)).items()
    }
    return [_kept(crd, webhooks.get(name_of(crd))) for crd in crds(described=True)]


def webhooks(program: Program, namespace: str) -> list[Object]:
    """The webhook configurations of a manager.

    Runtimes and presets that ship are created, and written again as they are, without asking it: they are installed
    together with it, before it runs, and rolled back when it does not.
    """
    made = configurations(program.webhooks, _through_service(program, namespace))
    for webhook in (webhook for configuration in made for webhook in configuration["webhooks"]):
        if webhook["rules"][0]["resources"][0] in _SHIPPED:
            webhook["matchConditions"] = [_NOT_WHEN_INSTALLED]
    return made


def _through_service(program: Program, namespace: str) -> ClientConfig:
    return lambda path: {"service": {"name": program.webhook_service, "namespace": namespace, "path": path}}


def _kept(crd: Object, conversion: Object | None) -> Object:
    metadata = {**crd["metadata"], "annotations": {**crd["metadata"].get("annotations", {}), **KEPT}}
    return {**crd, "metadata": metadata, "spec": {**crd["spec"], **({"conversion": conversion} if conversion else {})}}
