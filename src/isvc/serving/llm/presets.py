"""Presets: configurations that are templates, filled in with the service that builds on them.

The whole configuration is one template, the text of its JSON: that is what makes `{{ if }}` in one argument reach to
`{{ end }}` in another, and why strings in templates stand between backquotes. What comes out is read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import orjson

from isvc.api import DecodeError
from isvc.kube.objects import LAST_APPLIED, Object, annotations_of, dig, name_of, namespace_of, without
from isvc.serving import names
from isvc.serving.config import Config
from isvc.serving.environment import PRESET_PREFIX
from isvc.serving.llm import gojson
from isvc.serving.llm.functions import FUNCTIONS
from isvc.serving.llm.gotypes import go_type
from isvc.serving.llm.template import Template, action_at, path_at
from isvc.serving.templates import TemplateError, fill
from isvc.serving.templates.values import BOOL, STRING, Field, Type, Value

_PRESETS = (
    "template",
    "decode-template",
    "worker-data-parallel",
    "decode-worker-data-parallel",
    "prefill-template",
    "prefill-worker-data-parallel",
    "scheduler",
    "router-route",
    "scheduler-latency-predictor",
    "tokenizer",
    "tracing",
)
_GLOBAL = {
    "SystemNamespace": STRING,
    "IngressGatewayName": STRING,
    "IngressGatewayNamespace": STRING,
    "EnableTLS": BOOL,
    "ModelBasedRoutingHeaderName": STRING,
    "InferencePoolNamespacedName": STRING,
}


class PresetError(Exception):
    """A configuration that cannot be filled in: `path` says where, `problem` says why."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path, self.problem = path, problem


@dataclass(frozen=True, slots=True)
class Settings:
    """What presets may know of the control plane."""

    system_namespace: str
    ingress_gateway_name: str
    ingress_gateway_namespace: str
    enable_tls: bool
    model_based_routing_header_name: str

    @classmethod
    def of(cls, config: Config, namespace: str) -> Settings:
        *before, name = config.ingress.kserve_ingress_gateway.split("/")
        return cls(
            system_namespace=namespace,
            ingress_gateway_name=name if len(before) < 2 else config.ingress.kserve_ingress_gateway,
            ingress_gateway_namespace=before[0] if len(before) == 1 else namespace,
            enable_tls=config.ingress.enable_llm_inference_service_tls,
            model_based_routing_header_name=config.ingress.model_based_routing_header_name,
        )


@cache
def preset_names(prefix: str = PRESET_PREFIX) -> frozenset[str]:
    """Returns the configurations that come with the product and apply by themselves."""
    return frozenset(f"{prefix}config-llm-{name}" for name in _PRESETS)


def render_preset(config: Object, service: Object, settings: Settings) -> Object:
    """Returns the configuration with its templates filled in, both of the stored version.

    Raises `DecodeError` when one of them is not of its types, and `PresetError` when the templates cannot be filled in.
    """
    template = _template(orjson.dumps(config))
    try:
        filled = fill(template.text, template_values(config, service, settings), FUNCTIONS)
    except TemplateError as error:
        raise _locate(error, template.text) from error
    try:
        rendered: Object = orjson.loads(filled)
        if not template.keeps_its_form(filled):
            rendered = gojson.write(rendered, go_type("llm.LLMInferenceServiceConfig"))
    except orjson.JSONDecodeError as error:
        raise PresetError(path_at(filled, error.pos), f"is no longer JSON when it is filled in: {error.msg}") from error
    except DecodeError as error:
        raise PresetError(error.path, f"{error.problem} when it is filled in") from error
    return rendered


@lru_cache(maxsize=64)
def _template(config: bytes) -> Template:
    """Returns all of it but what kubectl keeps there: the same templates once more, which nobody reads."""
    read: Object = orjson.loads(config)
    if LAST_APPLIED in annotations_of(read):
        read["metadata"]["annotations"] = without(annotations_of(read), (LAST_APPLIED,))
    return Template.of(read, go_type("llm.LLMInferenceServiceConfig"))


def template_values(config: Object, service: Object, settings: Settings) -> Value:
    """Returns what templates see as `.`: the service, and `.GlobalConfig` among its fields."""
    values = gojson.write(service, go_type("llm.LLMInferenceService"))
    return Value(_root(), values | {"GlobalConfig": _global(config, service, settings)})


def _locate(error: TemplateError, text: str) -> PresetError:
    start, action = action_at(text, error.at or 0)
    problem = str(error)
    if not action.endswith("}}"):
        problem = "has no closing }}"
    elif '"' in action:
        problem += "; strings are written between `backquotes`"
    return PresetError(path_at(text, start), f"{action:.80}: {problem}")


@cache
def _root() -> Type:
    service = Field("LLMInferenceService", "", go_type("llm.LLMInferenceService").pointer(), embedded=True)
    settings = Type("GlobalConfig", "struct", fields=tuple(Field(name, name, kind) for name, kind in _GLOBAL.items()))
    return Type("LLMInferenceService", "struct", fields=(service, Field("GlobalConfig", "GlobalConfig", settings)))


def _global(config: Object, service: Object, settings: Settings) -> Object:
    pool = dig(config, "spec", "router", "scheduler", "pool", "ref", "name")
    pool = pool or names.child(name_of(service), "-inference-pool")
    return {
        "SystemNamespace": settings.system_namespace,
        "IngressGatewayName": settings.ingress_gateway_name,
        "IngressGatewayNamespace": settings.ingress_gateway_namespace,
        "EnableTLS": settings.enable_tls,
        "ModelBasedRoutingHeaderName": settings.model_based_routing_header_name,
        "InferencePoolNamespacedName": f"{namespace_of(service)}/{pool}",
    }
