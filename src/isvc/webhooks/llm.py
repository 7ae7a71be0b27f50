"""Admission and conversion of LLMInferenceServices and LLMInferenceServiceConfigs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from isvc.api.annotations import LLM_FINALIZER
from isvc.api.defaults.llm import default_llm_service
from isvc.api.defaults.localmodel import Cache
from isvc.api.llm.conversion import OLD, to_v1alpha2
from isvc.api.llm.v1alpha2 import LLMInferenceService
from isvc.api.validation import GOOD, Problem, Verdict, is_exempt
from isvc.api.validation.llm import validate_llm_config, validate_llm_service
from isvc.kube.objects import Object, finalizers_of, name_of, namespace_of
from isvc.serving.config import Config
from isvc.serving.config.current import Configuration
from isvc.serving.llm.gojson import rewrite_spec
from isvc.serving.llm.presets import PresetError, Settings, preset_names, render_preset
from isvc.serving.llm.sample import sample_service
from isvc.toolkit.cache import Reader
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse, allow, deny
from isvc.toolkit.webhook.admission import AdmissionHandler
from isvc.webhooks.answers import Handler, answer, object_validator, refusing_malformed
from isvc.webhooks.model_caches import Lister, marking_defaulter

_INVALID = 422


@dataclass(frozen=True, slots=True)
class Presets:
    """Configurations in the system namespace that come with the product; `keep` forbids to delete them."""

    names: frozenset[str]
    namespace: str
    keep: bool

    @classmethod
    def with_prefix(cls, prefix: str, namespace: str, *, keep: bool) -> Self:
        return cls(preset_names(prefix), namespace, keep)

    def deletion(self, config: Object) -> AdmissionResponse:
        """All but presets may go."""
        name = name_of(config)
        if name not in self.names or namespace_of(config) != self.namespace:
            return allow()
        if self.keep:
            return deny(f"well-known config {self.namespace}/{name} cannot be deleted: services build on it", 403)
        return allow(f"{self.namespace}/{name} is a preset: services may need it")


def llm_defaulter(reader: Reader, client: Lister, configuration: Configuration) -> AdmissionHandler:
    def default(request: AdmissionRequest, _: Config, caches: Iterable[Cache]) -> Object:
        service = default_llm_service(request.object, caches)
        return _as_first_written(service) if request.operation == "CREATE" else service

    return marking_defaulter(reader, client, configuration, default)


def _as_first_written(service: Object) -> Object:
    """Returns a new service as the controller's first write would leave it, which that write therefore saves.

    It has its finalizer, and its spec is spelled as a program in Go would write it down again.
    """
    finalizers = finalizers_of(service)
    if LLM_FINALIZER not in finalizers:
        finalizers = [*finalizers, LLM_FINALIZER]
    metadata = {**service["metadata"], "finalizers": finalizers}
    return {**service, "metadata": metadata, "spec": rewrite_spec(service["spec"], LLMInferenceService)}


def llm_validator() -> Handler:
    return object_validator(validate_llm_service, _INVALID)


def llm_config_validator(configuration: Configuration, presets: Presets) -> Handler:
    def validate(request: AdmissionRequest) -> AdmissionResponse:
        new, old = request.object, request.old_object or None
        if request.operation == "DELETE":
            return presets.deletion(request.old_object)
        verdict = validate_llm_config(new, old)
        if verdict.problems:
            return answer(request, verdict, _INVALID)
        if is_exempt(old, new):
            return allow()
        verdict = try_templates(new, Settings.of(configuration(), presets.namespace))
        is_changed = old is not None and old.get("spec") != new.get("spec")
        if is_changed and name_of(new) in presets.names:
            advice = f"{name_of(new)} is a preset: better make a configuration of your own"
            verdict = Verdict(verdict.problems, (advice,))
        return answer(request, verdict)

    return refusing_malformed(validate)


def try_templates(config: Object, settings: Settings) -> Verdict:
    """Judges whether a configuration can be filled in with a service that has about everything."""
    try:
        render_preset(to_v1alpha2(config) if config.get("apiVersion") == OLD else config, sample_service(), settings)
    except PresetError as error:
        return Verdict((Problem(error.path, error.problem),))
    return GOOD
