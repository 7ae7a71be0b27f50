"""LLMInferenceService and LLMInferenceServiceConfig, v1alpha1: served, and stored as v1alpha2."""

from __future__ import annotations

from typing import Annotated

from isvc.api.fields import SCHEMALESS, Definition, Int32, LocalObjectReference, Required, Schema, Spec, zero
from isvc.api.llm.router import CommonRouterSpec, CommonSchedulerSpec
from isvc.api.llm.status import CommonRouterStatus
from isvc.api.llm.v1alpha2 import TEMPLATED
from isvc.api.llm.workload import CommonWorkloadSpec, StorageInitializerSpec, TracingSpec
from isvc.api.meta import Addressable, Kind, Status
from isvc.kube.objects import Object

_Count = Annotated[Int32, Schema(minimum=1)]


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
    criticality: Annotated[str, Schema(enum=["Critical", "Standard", "Sheddable"])] | None = None
    """How much requests to this model matter. Without effect since v1alpha2."""
    lora: LoRASpec | None = None
    """Adapters to the model."""


class InferencePoolSpec(Spec):
    """The pool of pods that the scheduler picks from: one to make, or one that exists."""

    spec: Annotated[Object, Definition("inference.networking.x-k8s.io/InferencePoolSpec")] | None = None
    """The InferencePool to make."""
    ref: LocalObjectReference | None = None
    """An InferencePool that exists."""


class SchedulerSpec(CommonSchedulerSpec):
    """Picks the pod that answers a request best."""

    pool: InferencePoolSpec | None = None
    """The pool of pods that it picks from."""


class RouterSpec(CommonRouterSpec):
    """The way in."""

    scheduler: SchedulerSpec | None = None
    """Picks the pod that answers a request best."""


class WorkloadSpec(CommonWorkloadSpec):
    """A workload of v1alpha1."""


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
    """Where the service answers inside the cluster."""
    addresses: list[Addressable] = []
    """Where the service answers."""
    router: CommonRouterStatus | None = None
    """The way in."""


class LLMInferenceServiceConfigStatus(Status):
    """Who uses the configuration."""


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
