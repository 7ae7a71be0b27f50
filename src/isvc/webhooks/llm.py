"""LLMInferenceServices and their configurations on their way into the cluster, and between versions."""

from __future__ import annotations

from collections.abc import Callable

from isvc.api.defaults.llm import default_llm_service
from isvc.api.llm.conversion import convert
from isvc.api.resources import LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES
from isvc.api.validation import Problem, Verdict
from isvc.api.validation.llm import validate_llm_config, validate_llm_service
from isvc.kube.objects import Object, name_of, namespace_of
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.config import Config
from isvc.serving.configuration import Configuration
from isvc.toolkit.cache import Reader
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse, Route, conversion, mutating, patched, validating
from isvc.webhooks.answers import Handler, answer, reading, validator
from isvc.webhooks.inferenceservice import caches_for

READ = (CONFIG_MAPS,)
READ_IF_THERE = (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES)
"""Kinds that the webhooks read from memory: those they cannot do without, and those of features that may be off."""

_INVALID = 422


def _no_fault(_: Object) -> str | None:
    return None


def _no_preset(_: str) -> bool:
    return False


def llmisvc_routes(
    reader: Reader,
    namespace: str = "kserve",
    *,
    template_fault: Callable[[Object], str | None] = _no_fault,
    is_preset: Callable[[str], bool] = _no_preset,
) -> dict[str, Route]:
    """The webhooks of `llmisvc-manager`. The reader watches what `READ` and `READ_IF_THERE` list.

    `template_fault` says what is wrong with the templates of a configuration, if anything; `is_preset` knows the
    names of configurations that come with the product.
    """
    default = mutating(_defaulter(reader, Configuration(reader, namespace)))
    validate = validating(validator(_service, _INVALID))
    validate_config = validating(_config_validator(template_fault, is_preset, namespace))
    routes = {"/convert": conversion(convert)}
    for version in ("v1alpha1", "v1alpha2"):
        kind = f"serving-kserve-io-{version}-llminferenceservice"
        routes |= {
            f"/mutate-{kind}": default,
            f"/validate-{kind}": validate,
            f"/validate-{kind}config": validate_config,
        }
    return routes


def _defaulter(reader: Reader, configuration: Callable[[], Config]) -> Handler:
    def default(request: AdmissionRequest) -> AdmissionResponse:
        caches = caches_for(reader, configuration(), request.object, request.namespace)
        return patched(request.object, default_llm_service(request.object, caches))

    return reading(default)


def _service(request: AdmissionRequest) -> Verdict:
    return validate_llm_service(request.object, request.old_object or None)


def _config_validator(
    template_fault: Callable[[Object], str | None], is_preset: Callable[[str], bool], namespace: str
) -> Handler:
    def validate(request: AdmissionRequest) -> AdmissionResponse:
        if request.operation == "DELETE":
            old = request.old_object
            ours = is_preset(name_of(old)) and namespace_of(old) == namespace
            return answer(Verdict(warnings=(f"{name_of(old)} is a preset: services may need it",) if ours else ()))
        old_object = request.old_object or None
        verdict = validate_llm_config(request.object, old_object)
        if verdict.problems:
            return answer(verdict, _INVALID)
        if (fault := template_fault(request.object)) is not None:
            return answer(Verdict((Problem("spec", fault),)))
        changed = old_object is not None and old_object.get("spec") != request.object.get("spec")
        if changed and is_preset(request.name):
            return answer(Verdict(warnings=(f"{request.name} is a preset: better make a configuration of your own",)))
        return answer(verdict)

    return reading(validate)
