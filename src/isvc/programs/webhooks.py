"""The webhooks of all managers, in one table.

Routes, caBundles, what `isvc up` installs and the manifests all follow from it; see `registration`.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from isvc.api.llm.conversion import convert
from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    GROUP,
    INFERENCE_GRAPHS,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LLM_INFERENCE_SERVICE_CONFIGS_V1ALPHA1,
    LLM_INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICES_V1ALPHA1,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    SERVING_RUNTIMES,
    TRAINED_MODELS,
)
from isvc.api.validation.inferencegraph import validate_graph
from isvc.api.validation.trainedmodel import validate_trained_model
from isvc.kube.resource import PODS, Resource
from isvc.programs.registration import (
    WRITES,
    Action,
    AdmissionWebhook,
    ConversionWebhook,
    MakeHandler,
    Webhook,
    WebhookContext,
)
from isvc.serving.annotations import SERVICE
from isvc.toolkit.reads import Read
from isvc.toolkit.webhook.admission import AdmissionHandler
from isvc.webhooks import inferenceservice, llm, localmodel, model_caches, pods, runtimes
from isvc.webhooks.answers import object_validator

ALL_WRITES: Final = (*WRITES, "DELETE")


def _validator(
    resource: Resource, handler: MakeHandler, reads: tuple[Read, ...] = (), operations: tuple[str, ...] = WRITES
) -> AdmissionWebhook:
    kind = resource.kind.lower()
    name = f"{kind}.kserve-webhook-server.validator"
    return AdmissionWebhook(f"{kind}.{GROUP}", name, Action.VALIDATE, resource, handler, reads, operations)


def _llm(
    action: Action,
    resource: Resource,
    handler: MakeHandler,
    reads: tuple[Read, ...] = (),
    operations: tuple[str, ...] = WRITES,
) -> AdmissionWebhook:
    """Makes the webhook of one version: an object is admitted as it was written, not as it would be converted."""
    kind, role = resource.kind.lower(), "defaulter" if action is Action.MUTATE else "validator"
    name = f"{kind}.kserve-webhook-server.{resource.version}.{role}"
    return AdmissionWebhook(f"{kind}.{GROUP}", name, action, resource, handler, reads, operations, match_policy="Exact")


def _llm_config_validator(context: WebhookContext) -> AdmissionHandler:
    chosen = context.options.llm
    presets = llm.Presets.with_prefix(chosen.preset_prefix, context.options.system_namespace, keep=chosen.keep_presets)
    return llm.llm_config_validator(context.configuration, presets)


def _runtime_validator(resource: Resource, context: WebhookContext) -> AdmissionHandler:
    return runtimes.runtime_validator(resource, context.reader, context.configuration)


ISVC_WEBHOOKS: Final[tuple[Webhook, ...]] = (
    AdmissionWebhook(
        configuration=f"inferenceservice.{GROUP}",
        name="inferenceservice.kserve-webhook-server.defaulter",
        action=Action.MUTATE,
        resource=INFERENCE_SERVICES,
        handler=lambda context: inferenceservice.defaulter(context.reader, context.client, context.configuration),
        reads=model_caches.READS,
    ),
    AdmissionWebhook(
        configuration=f"inferenceservice.{GROUP}",
        name="inferenceservice.kserve-webhook-server.pod-mutator",
        action=Action.MUTATE,
        resource=PODS,
        handler=lambda context: pods.PodMutator(context.reader, context.client, context.options.system_namespace),
        reads=pods.READS,
        operations=("CREATE",),
        own_path=pods.PATH,
        reinvocation_policy="IfNeeded",
        namespace_selector={"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]},
        object_selector={"matchExpressions": [{"key": SERVICE, "operator": "Exists"}]},
    ),
    _validator(INFERENCE_SERVICES, lambda context: inferenceservice.service_validator(context.configuration)),
    _validator(TRAINED_MODELS, lambda context: object_validator(validate_trained_model)),
    _validator(INFERENCE_GRAPHS, lambda context: object_validator(validate_graph)),
    *(
        _validator(resource, partial(_runtime_validator, resource), (Read(resource, optional=not resource.namespaced),))
        for resource in (CLUSTER_SERVING_RUNTIMES, SERVING_RUNTIMES)
    ),
)

LLM_WEBHOOKS: Final[tuple[Webhook, ...]] = (
    *(
        _llm(
            Action.MUTATE,
            resource,
            lambda context: llm.llm_defaulter(context.reader, context.client, context.configuration),
            model_caches.READS,
        )
        for resource in (LLM_INFERENCE_SERVICES_V1ALPHA1, LLM_INFERENCE_SERVICES)
    ),
    *(
        _llm(Action.VALIDATE, resource, lambda context: llm.llm_validator())
        for resource in (LLM_INFERENCE_SERVICES_V1ALPHA1, LLM_INFERENCE_SERVICES)
    ),
    *(
        _llm(Action.VALIDATE, resource, _llm_config_validator, operations=ALL_WRITES)
        for resource in (LLM_INFERENCE_SERVICE_CONFIGS_V1ALPHA1, LLM_INFERENCE_SERVICE_CONFIGS)
    ),
    ConversionWebhook((LLM_INFERENCE_SERVICES, LLM_INFERENCE_SERVICE_CONFIGS), convert),
)

LOCALMODEL_WEBHOOKS: Final[tuple[Webhook, ...]] = (
    _validator(
        LOCAL_MODEL_CACHES,
        lambda context: localmodel.cache_validator(context.reader),
        localmodel.READS,
        ALL_WRITES,
    ),
    _validator(
        LOCAL_MODEL_NAMESPACE_CACHES,
        lambda context: localmodel.namespace_cache_validator(context.reader),
        localmodel.NAMESPACE_READS,
        ALL_WRITES,
    ),
)
