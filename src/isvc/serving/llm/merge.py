"""Merges specs of LLMInferenceServices: each later one is laid over those before it.

Maps merge, and so do the lists of a pod that have a key (containers, variables, volumes by name). All other lists are
replaced. Specs go through Go's types on the way, so that an overlay says only what it would say there: a zero that Go
leaves out takes nothing away.
"""

from __future__ import annotations

from functools import cache, reduce
from typing import Any

from isvc.kube.objects import Object
from isvc.kube.patch import strategic
from isvc.serving.llm import gojson
from isvc.serving.llm.gotypes import go_type
from isvc.serving.podspec import pod_schema


def merge_specs(*specs: Object) -> Object:
    """Raises `DecodeError` for a spec that is not of its types, and `PatchError` for ones that do not go together."""
    return reduce(lay_over, specs, {})


def lay_over(base: Object, spec: Object) -> Object:
    """Returns the base, which is merged already, with one more spec over it."""
    overlay: Object = gojson.write(spec, go_type("llm.LLMInferenceServiceSpec"))
    if not base:
        return overlay
    model = {key: value for key, value in overlay["model"].items() if value != ""}
    return strategic.apply(base, _drop_nulls({**overlay, "model": model}), _schema())


def _drop_nulls(value: Any) -> Any:
    """Returns an overlay without nulls: a list that Go left empty takes nothing away."""
    if isinstance(value, dict):
        return {key: _drop_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_drop_nulls(inner) for inner in value] if isinstance(value, list) else value


@cache
def _schema() -> Object:
    pod = pod_schema("PodSpec")
    pods: Object = {"properties": {"template": pod, "worker": pod}}
    tokenizer = {"properties": {"template": pod}}
    scheduler = {"properties": {"template": pod, "tokenizer": tokenizer}}
    router = {"properties": {"scheduler": scheduler}}
    return {"properties": {**pods["properties"], "prefill": pods, "router": router}}
