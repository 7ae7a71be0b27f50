"""The spec of a service or configuration as a program in Go would write it down again.

KServe's controllers rewrite a new object with their first write to it, so that is how its spec is stored.
"""

from __future__ import annotations

from isvc.api.llm.v1alpha2 import LLMInferenceService, LLMInferenceServiceConfig
from isvc.api.schema import schema_for
from isvc.kube.objects import Object
from isvc.serving.llm.gojson import rewritten
from isvc.serving.llm.gotypes import go_type


def spelled(spec: Object, kind: type[LLMInferenceService | LLMInferenceServiceConfig]) -> Object:
    """Raises `DecodeError` for a spec that is not of its types."""
    schema = schema_for(kind)["properties"]["spec"]
    result: Object = rewritten(spec, go_type("llm.LLMInferenceServiceSpec"), schema, "spec")
    return result
