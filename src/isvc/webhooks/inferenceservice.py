"""InferenceServices on their way into the cluster."""

from __future__ import annotations

from isvc.api.defaults.inferenceservice import ServiceDefaults
from isvc.serving.config import Config


def service_defaults(config: Config) -> ServiceDefaults:
    """What the configuration says about services that do not say it themselves."""
    resources = config.inference_service.resource
    return ServiceDefaults(
        mode=config.deploy.default_mode,
        requests=_set(cpu=resources.cpu_request, memory=resources.memory_request),
        limits=_set(cpu=resources.cpu_limit, memory=resources.memory_limit),
        art_version=config.explainers.art.default_image_version,
        mount_token=config.security.auto_mount_service_account_token,
    )


def _set(**quantities: str) -> dict[str, str]:
    return {name: quantity for name, quantity in quantities.items() if quantity}
