"""Admission of InferenceServices."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from isvc.api import InferenceService
from isvc.api.annotations import FINALIZER
from isvc.api.defaults.inferenceservice import ServiceDefaults, default_service
from isvc.api.defaults.localmodel import Cache
from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode
from isvc.api.validation import Verdict, changes_nothing
from isvc.api.validation.inferenceservice import validate_service
from isvc.kube.objects import Object, annotations_of, dig
from isvc.serving import admission
from isvc.serving.config import Config
from isvc.serving.config.current import Configuration
from isvc.toolkit.cache import Reader
from isvc.toolkit.webhook import AdmissionRequest
from isvc.toolkit.webhook.admission import AdmissionHandler
from isvc.webhooks.answers import Handler, validator
from isvc.webhooks.model_caches import Lister, marking_defaulter


def defaulter(reader: Reader, client: Lister, configuration: Configuration) -> AdmissionHandler:
    def default(request: AdmissionRequest, config: Config, caches: Iterable[Cache]) -> Object:
        service = default_service(request.object, service_defaults(config), caches)
        return add_finalizer(service) if request.operation == "CREATE" else service

    return marking_defaulter(reader, client, configuration, default)


def add_finalizer(service: Object) -> Object:
    """Returns the service with its controller's finalizer from the start, which spares the controller a write.

    A ModelMesh service without a transformer is another controller's.
    """
    metadata = service["metadata"]
    finalizers = metadata.get("finalizers") or []
    mesh = annotations_of(service).get(DEPLOYMENT_MODE) == DeploymentMode.MODEL_MESH
    if FINALIZER in finalizers or (mesh and not dig(service, "spec", "transformer")):
        return service
    return {**service, "metadata": {**metadata, "finalizers": [*finalizers, FINALIZER]}}


def service_validator(configuration: Callable[[], Config]) -> Handler:
    def judge(request: AdmissionRequest) -> Verdict:
        config = configuration()
        verdict = validate_service(request.object, request.old_object or None, config.multi_node.gpu_resource_types)
        if verdict.problems or changes_nothing(request.old_object or None, request.object):
            return verdict
        service = InferenceService.decode(request.object)
        is_new = request.operation == "CREATE"  # the name of one that is there cannot be changed any more
        return Verdict.of(
            admission.name_problems(_with_namespace(request), service, config) if is_new else (),
            [*verdict.warnings, *admission.warnings(service, config)],
        )

    return validator(judge)


def _with_namespace(request: AdmissionRequest) -> Object:
    """Returns the object with the namespace it is created in."""
    return {**request.object, "metadata": {**request.object["metadata"], "namespace": request.namespace}}


def service_defaults(config: Config) -> ServiceDefaults:
    """Returns what the configuration says about services that do not say it themselves."""
    resources = config.inference_service.resource.requirements
    return ServiceDefaults(
        mode=config.deploy.default_mode,
        requests=_without_empty(resources["requests"]),
        limits=_without_empty(resources["limits"]),
        art_version=config.explainers.art.default_image_version,
        mount_token=config.security.auto_mount_service_account_token,
    )


def _without_empty(quantities: dict[str, str]) -> dict[str, str]:
    return {name: quantity for name, quantity in quantities.items() if quantity}
