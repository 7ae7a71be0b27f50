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


def kinds(namespace: str, *, certificate: str = "", authority: str = "") -> list[Object]:
    """Returns the CRDs, described; those of several versions always with the webhook that converts them.

    The API server trusts the webhook by the authority of a Certificate of cert-manager's, by one that is given (PEM in
    base64), or by one that a manager writes later.
    """
    webhooks = {
        name: conversion
        for program in PROGRAMS
        for name, conversion in conversions(program.webhooks, _through_service(program, namespace, authority)).items()
    }
    injected = {"cert-manager.io/inject-ca-from": f"{namespace}/{certificate}"} if certificate else {}
    return [
        _annotate({**crd, "spec": {**crd["spec"], "conversion": webhooks[name_of(crd)]}}, KEPT | injected)
        if name_of(crd) in webhooks
        else _annotate(crd, KEPT)
        for crd in crds(described=True)
    ]


def webhooks(program: Program, namespace: str) -> list[Object]:
    """Returns the webhook configurations of a manager.

    Runtimes and presets that ship are created, and written again as they are, without asking it: they are installed
    together with it, before it runs, and rolled back when it does not.
    """
    made = configurations(program.webhooks, _through_service(program, namespace))
    for webhook in (webhook for configuration in made for webhook in configuration["webhooks"]):
        if webhook["rules"][0]["resources"][0] in _SHIPPED:
            webhook["matchConditions"] = [_NOT_WHEN_INSTALLED]
    return made


def _through_service(program: Program, namespace: str, authority: str = "") -> ClientConfig:
    trusted = {"caBundle": authority} if authority else {}
    service = {"name": program.webhook_service, "namespace": namespace}
    return lambda path: {"service": {**service, "path": path}, **trusted}


def _annotate(crd: Object, annotations: Object) -> Object:
    metadata = {**crd["metadata"], "annotations": {**crd["metadata"].get("annotations", {}), **annotations}}
    return {**crd, "metadata": metadata}
