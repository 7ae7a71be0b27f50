"""LLMInferenceService and LLMInferenceServiceConfig, v1alpha2: the version that is stored."""

from __future__ import annotations

from typing import Annotated

from isvc.api.fields import (
    ATOMIC,
    SCHEMALESS,
    Definition,
    Int32,
    LocalObjectReference,
    Required,
    Schema,
    Spec,
    Templated,
    zero,
)
from isvc.api.inferenceservice.models import ConfidentialSpec
from isvc.api.llm.names import UntypedObjectReference
from isvc.api.llm.router import CommonRouterSpec, CommonSchedulerSpec
from isvc.api.llm.status import AppliedConfigRef, RouterStatus, SourcedAddress, WorkloadStatus
from isvc.api.llm.workload import StorageInitializerSpec, TracingSpec, WorkloadSpec
from isvc.api.meta import Addressable, Kind, Status
from isvc.kube.objects import Object

_Count = Annotated[Int32, Schema(minimum=1)]
TEMPLATED = Templated(
    "template",
    "worker",
    "prefill.template",
    "prefill.worker",
    "router.route.http.spec",
    "router.scheduler.template",
    "router.scheduler.tokenizer.template",
    "router.scheduler.pool.spec",
)
"""Parts of a configuration that may hold `{{ ... }}` where a name or a quantity belongs."""


class LoRASpec(Spec):
    """Adapters to the model."""

    adapters: Annotated[list[LLMModelSpec], SCHEMALESS] = []
    """Models that adapt the base model, each with a name and a URI."""
    max_rank: _Count | None = None
    """Highest rank of an adapter."""
    max_adapters: _Count | None = None
    """How many adapters are in GPU memory at once."""
    max_cpu_adapters: _Count | None = None
    """How many adapters are in main memory at once."""


class LLMModelSpec(Spec):
    """The model."""

    uri: Required[str] = zero(str)
    """Where the model is stored, for example hf://meta-llama/Llama-3.1-8B-Instruct."""
    name: str | None = None
    """Name of the model in requests; the service's own name unless said otherwise."""
    lora: LoRASpec | None = None
    """Adapters to the model."""
    confidential: ConfidentialSpec | None = None
    """Set when the model is encrypted."""


class InferencePoolSpec(Spec):
    """The pool of pods that the scheduler picks from: one to make, or one that exists."""

    spec: Annotated[Object, Definition("inference.networking.k8s.io/InferencePoolSpec")] | None = None
    """The InferencePool to make."""
    ref: LocalObjectReference | None = None
    """An InferencePool that exists."""


class SchedulerSpec(CommonSchedulerSpec):
    """Picks the pod that answers a request best."""

    pool: InferencePoolSpec | None = None
    """The pool of pods that it picks from."""

    @property
    def users_pool(self) -> str:
        """The name of a pool that exists; empty where one is to be made."""
        reference = self.pool.ref if self.pool else None
        return str((reference or {}).get("name") or "")


class RouterSpec(CommonRouterSpec):
    """The way in."""

    scheduler: SchedulerSpec | None = None
    """Picks the pod that answers a request best."""


class LLMInferenceServiceSpec(WorkloadSpec):
    """What is wanted. The fields of the main workload stand beside the others."""

    model: LLMModelSpec = LLMModelSpec()
    """The model."""
    storage_initializer: StorageInitializerSpec | None = None
    """The container that downloads the model."""
    router: RouterSpec | None = None
    """The way in."""
    prefill: WorkloadSpec | None = None
    """A second workload that reads prompts, so that the main one only decodes."""
    tracing: TracingSpec | None = None
    """Traces of requests."""
    base_refs: list[LocalObjectReference] = []
    """Configurations to build on; later ones win, and this spec wins over all."""


class LLMInferenceServiceStatus(Status):
    """What is there."""

    url: str | None = None
    """Where the service answers first of all."""
    address: Addressable | None = None
    """No longer used; see addresses."""
    addresses: Annotated[list[SourcedAddress], ATOMIC] = []
    """Where the service answers."""
    router: RouterStatus | None = None
    """The way in."""
    workloads: WorkloadStatus | None = None
    """What runs."""
    applied_configs: Annotated[list[AppliedConfigRef], ATOMIC] = []
    """Configurations that went into the service, the strongest last."""


class LLMInferenceServiceConfigStatus(Status):
    """Who uses the configuration."""

    referenced_by: Annotated[list[UntypedObjectReference], ATOMIC] = []
    """Services that use it."""


class LLMInferenceService(Kind):
    """A large language model that answers requests, with all it takes to run, scale and reach it."""

    spec: LLMInferenceServiceSpec = LLMInferenceServiceSpec()
    """What is wanted."""
    status: LLMInferenceServiceStatus = LLMInferenceServiceStatus()
    """What is there."""


class LLMInferenceServiceConfig(Kind):
    """A configuration that LLMInferenceServices build on."""

    spec: Annotated[LLMInferenceServiceSpec, TEMPLATED] = LLMInferenceServiceSpec()
    """What services inherit."""
    status: LLMInferenceServiceConfigStatus = LLMInferenceServiceConfigStatus()
    """Who uses it."""
