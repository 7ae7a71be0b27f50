"""LLMInferenceServices and their configurations on their way into the cluster, and between versions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from isvc.api.defaults.llm import default_llm_service
from isvc.api.llm.conversion import OLD, convert, to_v1alpha2
from isvc.api.resources import LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES
from isvc.api.validation import GOOD, Problem, Verdict, is_exempt
from isvc.api.validation.llm import validate_llm_config, validate_llm_service
from isvc.kube.objects import Object, name_of, namespace_of
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.config import Config
from isvc.serving.config.current import Configuration
from isvc.serving.llm.presets import PREFIX, PresetError, Settings, preset_names, render_preset
from isvc.serving.llm.sample import sample_service
from isvc.toolkit.cache import Reader
from isvc.toolkit.webhook import (
    AdmissionRequest,
    AdmissionResponse,
    Route,
    allow,
    conversion,
    deny,
    mutating,
    patched,
    validating,
)
from isvc.webhooks.answers import Handler, answer, reading, validator
from isvc.webhooks.inferenceservice import caches_for

READ = (CONFIG_MAPS,)
READ_IF_THERE = (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES)
"""Kinds that the webhooks read from memory: those they cannot do without, and those of features that may be off."""

_INVALID = 422


def llmisvc_routes(
    reader: Reader, namespace: str = "kserve", *, preset_prefix: str = PREFIX, keep_presets: bool = True
) -> dict[str, Route]:
    """The webhooks of `llmisvc-manager`. The reader watches what `READ` and `READ_IF_THERE` list.

    Presets are the configurations in our namespace that come with the product; their names begin with the prefix, and
    unless `keep_presets` is off they cannot be deleted.
    """
    configuration = Configuration(reader, namespace)
    default = mutating(_defaulter(reader, configuration))
    validate = validating(validator(_service, _INVALID))
    presets = _Presets(preset_names(preset_prefix), namespace, keep_presets)
    validate_config = validating(_config_validator(configuration, presets))
    routes = {"/convert": conversion(convert)}
    for version in ("v1alpha1", "v1alpha2"):
        kind = f"serving-kserve-io-{version}-llminferenceservice"
        routes |= {
            f"/mutate-{kind}": default,
            f"/validate-{kind}": validate,
            f"/validate-{kind}config": validate_config,
        }
    return routes


@dataclass(frozen=True, slots=True)
class _Presets:
    names: frozenset[str]
    namespace: str
    keep: bool

    def deletion(self, config: Object) -> AdmissionResponse:
        """All but presets may go."""
        name = name_of(config)
        if name not in self.names or namespace_of(config) != self.namespace:
            return allow()
        if self.keep:
            return deny(f"{self.namespace}/{name} is a preset and cannot be deleted: services build on it", 403)
        return allow(f"{self.namespace}/{name} is a preset: services may need it")


def _defaulter(reader: Reader, configuration: Callable[[], Config]) -> Handler:
    def default(request: AdmissionRequest) -> AdmissionResponse:
        caches = caches_for(reader, configuration(), request.object, request.namespace)
        return patched(request.object, default_llm_service(request.object, caches))

    return reading(default)


def _service(request: AdmissionRequest) -> Verdict:
    return validate_llm_service(request.object, request.old_object or None)


def _config_validator(configuration: Configuration, presets: _Presets) -> Handler:
    def validate(request: AdmissionRequest) -> AdmissionResponse:
        new, old = request.object, request.old_object or None
        if request.operation == "DELETE":
            return presets.deletion(request.old_object)
        verdict = validate_llm_config(new, old)
        if verdict.problems:
            return answer(verdict, _INVALID)
        if is_exempt(old, new):
            return allow()
        verdict = try_templates(new, Settings.of(configuration(), presets.namespace))
        is_changed = old is not None and old.get("spec") != new.get("spec")
        if is_changed and name_of(new) in presets.names:
            advice = f"{name_of(new)} is a preset: better make a configuration of your own"
            verdict = Verdict(verdict.problems, (advice,))
        return answer(verdict)

    return reading(validate)


def try_templates(config: Object, settings: Settings) -> Verdict:
    """Whether a configuration can be filled in with a service that has about everything."""
    try:
        render_preset(to_v1alpha2(config) if config.get("apiVersion") == OLD else config, sample_service(), settings)
    except PresetError as error:
        return Verdict((Problem(error.path, error.problem),))
    return GOOD
