"""What the reference refused, we refuse; what it took, we take. Over every case there is, without any server."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.recordings import load
from tests.unit.api import conformance
from tests.unit.api.conformance import Write

from isvc.api import (
    ClusterServingRuntime,
    DecodeError,
    InferenceGraph,
    InferenceService,
    ServingRuntime,
    TrainedModel,
)
from isvc.api.defaults.inferenceservice import default_service
from isvc.api.defaults.llm import default_llm_service
from isvc.api.llm import v1alpha1, v1alpha2
from isvc.api.meta import Kind
from isvc.api.schema import schema_for
from isvc.api.validation import Verdict
from isvc.api.validation.inferencegraph import validate_graph
from isvc.api.validation.inferenceservice import validate_service
from isvc.api.validation.llm import validate_llm_config, validate_llm_service
from isvc.api.validation.servingruntime import validate_runtime
from isvc.api.validation.trainedmodel import validate_trained_model
from isvc.apiserver.crd.custom import Custom
from isvc.serving.config import Config
from isvc.serving.llm.presets import Settings
from isvc.webhooks.inferenceservice import service_defaults
from isvc.webhooks.llm import try_templates

CASES = conformance.cases()
LLM_KINDS = ("LLMInferenceService", "LLMInferenceServiceConfig")
KINDS: dict[str, type[Kind]] = {
    "InferenceService": InferenceService,
    "InferenceGraph": InferenceGraph,
    "TrainedModel": TrainedModel,
    "ServingRuntime": ServingRuntime,
    "ClusterServingRuntime": ClusterServingRuntime,
}


@cache
def server(kind: type[Kind]) -> Custom:
    """What an API server checks by our CRD: types, bounds, formats and rules."""
    return Custom({"spec": {}}, {"schema": {"openAPIV3Schema": schema_for(kind)}}, None)


def kind_of(obj: dict[str, Any]) -> type[Kind]:
    if obj["kind"] in LLM_KINDS:
        found: type[Kind] = getattr(v1alpha1 if obj["apiVersion"].endswith("v1alpha1") else v1alpha2, obj["kind"])
        return found
    return KINDS[obj["kind"]]


def refuses(write: Write, config: Config) -> int:
    """The code with which the API server and we refuse a write, 0 when it is taken."""
    kind = kind_of(write.new)
    obj = conformance.with_defaults(write.new, schema_for(kind))
    try:
        if kind is InferenceService:
            obj = default_service(obj, service_defaults(config))
        elif kind.__name__ == "LLMInferenceService":
            obj = default_llm_service(obj)
    except DecodeError:
        return 400
    write.new = obj
    if server(kind).validate_update(obj, write.old, "") if write.old else server(kind).validate_create(obj):
        return 422
    refusal = 422 if kind.__name__ in LLM_KINDS else 403
    if judge(write).problems:
        return refusal
    if kind.__name__ == "LLMInferenceServiceConfig" and try_templates(obj, Settings.of(config, "kserve")).problems:
        return 403
    return 0


def judge(write: Write) -> Verdict:
    match write.new["kind"]:
        case "InferenceService":
            return validate_service(write.new, write.old)
        case "LLMInferenceService":
            return validate_llm_service(write.new, write.old)
        case "LLMInferenceServiceConfig":
            return validate_llm_config(write.new, write.old)
        case "InferenceGraph":
            return validate_graph(write.new, write.old)
        case "TrainedModel":
            return validate_trained_model(write.new, write.old)
        case "ServingRuntime":
            others = [obj for obj in write.around if obj["kind"] == "ServingRuntime"]
            return validate_runtime(write.new, others, write.old, ServingRuntime)
        case _:
            others = [obj for obj in write.around if obj["kind"] == "ClusterServingRuntime"]
            others += conformance.base_objects("ClusterServingRuntime")
            return validate_runtime(write.new, others, write.old, ClusterServingRuntime)


def is_beyond_us(refusal: dict[str, Any]) -> bool:
    """Refused by the API server itself, for its name."""
    return "metadata.name: Invalid value" in refusal["message"]


@pytest.mark.skipif(not CASES, reason="the conformance cases are not here")
@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_acceptance_agrees_with_the_reference(path: Path):
    config = Config.parse(conformance.configuration(path.parent.name))
    free_codes = "code" in str(load(path).get("ignore", ""))
    for writes in conformance.replay(path):
        if writes.title.split("/")[0] not in (*KINDS, *LLM_KINDS) or any(map(is_beyond_us, writes.refusals)):
            for write in writes:
                writes.keep(write.new)
            continue
        codes = []
        for write in writes:
            code = refuses(write, config)
            if code:
                codes.append(code)
            else:
                writes.keep(write.new)
        assert len(codes) == len(writes.refusals), f"{writes.title}: {codes}, the reference: {writes.refusals}"
        assert free_codes or codes == [refusal["code"] for refusal in writes.refusals], writes.title
