"""Every format that a shipped runtime offers by itself: a service that names it and no more is served, or told how."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from isvc.api.codec import decode
from isvc.api.defaults.inferenceservice import ServiceDefaults, default_service
from isvc.api.inferenceservice.models import ModelSpec
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES
from isvc.kube.objects import Object
from isvc.local.install.shipped import local_runtimes
from isvc.serving.runtimes import ModelRefused, Runtime, Runtimes
from isvc.serving.shipped import shipped_runtimes


def runtimes_of(objects: Iterable[Object]) -> Runtimes:
    found = [each for each in objects if each["kind"] == CLUSTER_SERVING_RUNTIMES.kind]
    return Runtimes((), [Runtime.of(each, cluster=True) for each in found])


LAPTOP, CLUSTER = runtimes_of(local_runtimes()), runtimes_of(shipped_runtimes())


def formats_of(runtimes: Runtimes) -> list[str]:
    single = (each for each in runtimes.cluster if not each.spec.is_multi_node and not each.spec.is_disabled)
    return sorted({name for runtime in single for name in runtime.selectable})


def bare_model(name: str) -> Object:
    predictor = {"model": {"modelFormat": {"name": name}, "storageUri": "pvc://models/it"}}
    service = {"metadata": {"name": "it", "namespace": "default"}, "spec": {"predictor": predictor}}
    model: Object = default_service(service, ServiceDefaults())["spec"]["predictor"]["model"]
    return model


@pytest.mark.parametrize("name", formats_of(LAPTOP))
def test_a_laptop_serves_a_model_that_names_its_format_alone(name: str):
    chosen = LAPTOP.choose(decode(ModelSpec, bare_model(name)), multi_node=False)
    assert name in chosen.selectable


@pytest.mark.parametrize("name", formats_of(CLUSTER))
def test_a_cluster_serves_it_or_names_the_protocol(name: str):
    model = bare_model(name)
    try:
        chosen = CLUSTER.choose(decode(ModelSpec, model), multi_node=False)
    except ModelRefused as refused:
        spoken = refused.remedy.partition("set model.protocolVersion: ")[2].split()[0]
        chosen = CLUSTER.choose(decode(ModelSpec, {**model, "protocolVersion": spoken}), multi_node=False)
    assert name in chosen.selectable
