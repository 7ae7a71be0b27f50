"""What the reference refused, we refuse; what it took, we take. Over every case there is, without any server."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
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
from isvc.api.meta import Kind
from isvc.api.schema import schema_for
from isvc.api.validation import Verdict
from isvc.api.validation.inferencegraph import validate_graph
from isvc.api.validation.inferenceservice import validate_service
from isvc.api.validation.servingruntime import validate_runtime
from isvc.api.validation.trainedmodel import validate_trained_model
from isvc.serving.config import Config
from isvc.webhooks.inferenceservice import service_defaults

CASES = conformance.cases()
KINDS: dict[str, type[Kind]] = {
    "InferenceService": InferenceService,
    "InferenceGraph": InferenceGraph,
    "TrainedModel": TrainedModel,
    "ServingRuntime": ServingRuntime,
    "ClusterServingRuntime": ClusterServingRuntime,
}


@cache
def checker(kind: type[Kind]) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schema_for(kind))


def refuses(write: Write, config: Config) -> int:
    """The code with which the API server and we refuse a write, 0 when it is taken."""
    kind = KINDS[write.new["kind"]]
    obj = conformance.with_defaults(write.new, schema_for(kind))
    try:
        if kind is InferenceService:
            obj = default_service(obj, service_defaults(config))
    except DecodeError:
        return 400
    write.new = obj
    if not checker(kind).is_valid(obj):
        return 422
    return 403 if judge(write).problems else 0


def judge(write: Write) -> Verdict:
    match write.new["kind"]:
        case "InferenceService":
            return validate_service(write.new, write.old)
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
    """Refused for its name, by the API server itself."""
    return "metadata.name: Invalid value" in refusal["message"]


@pytest.mark.skipif(not CASES, reason="the conformance cases are not here")
@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_acceptance_agrees_with_the_reference(path: Path):
    config = Config.parse(conformance.configuration(path.parent.name))
    free_codes = "code" in str(conformance.load(path).get("ignore", ""))
    for writes in conformance.replay(path):
        if writes.title.split("/")[0] not in KINDS or any(map(is_beyond_us, writes.refusals)):
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
