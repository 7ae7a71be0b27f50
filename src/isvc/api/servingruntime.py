"""ServingRuntime and ClusterServingRuntime: how models of a format are served."""

from __future__ import annotations

from typing import Annotated

from isvc.api.fields import Definition, Inline, Int, Int32, Required, Schema, Spec, zero
from isvc.api.meta import Kind
from isvc.kube.objects import Object

_POD = Inline(
    "io.k8s.api.core.v1.PodSpec",
    only=(
        "affinity",
        "containers",
        "hostIPC",
        "imagePullSecrets",
        "nodeSelector",
        "resourceClaims",
        "schedulerName",
        "tolerations",
        "volumes",
    ),
    required=("containers",),
    plain=("containers", "imagePullSecrets", "nodeSelector", "tolerations", "volumes"),
)


class SupportedModelFormat(Spec):
    """A model format that the runtime serves."""

    name: Required[str] = zero(str)
    """Name of the format, for example sklearn."""
    version: str | None = None
    """Version of the format, such as 1 or 1.2."""
    auto_select: bool | None = None
    """Whether models that name no runtime may be given this one."""
    priority: Annotated[Int32, Schema(minimum=1)] | None = None
    """Decides between runtimes that support the same format: the higher wins."""


class StorageHelper(Spec):
    """ModelMesh: the container that downloads models."""

    disabled: bool = False
    """Whether to go without it."""


class BuiltInAdapter(Spec):
    """ModelMesh: the adapter between it and a known server."""

    server_type: str = ""
    """Which server: triton, mlserver or ovms."""
    runtime_management_port: Int = 0
    """Port on which the server takes models."""
    mem_buffer_bytes: Int = 0
    """Memory that models may not use."""
    model_loading_timeout_millis: Int = 0
    """How long loading may take, in milliseconds."""
    env: list[Annotated[Object, Definition("io.k8s.api.core.v1.EnvVar")]] = []
    """Further settings of the adapter."""


class RuntimeWorkerSpec(Spec):
    """The workers of a runtime that spans several nodes. `pod` holds the pod's own fields, written beside these."""

    pipeline_parallel_size: Int | None = None
    """Over how many nodes a model is spread, head included."""
    tensor_parallel_size: Int | None = None
    """How many GPUs each node uses."""
    labels: dict[str, str] = {}
    """Labels for worker pods."""
    annotations: dict[str, str] = {}
    """Annotations for worker pods."""
    pod: Annotated[Object, _POD] = {}


class ServingRuntimeSpec(Spec):
    """Which models a runtime serves, and with which containers. `pod` holds the pod's own fields, written beside."""

    supported_model_formats: list[SupportedModelFormat] = []
    """Formats that this runtime serves."""
    multi_model: bool | None = None
    """Whether one server holds many models (ModelMesh)."""
    disabled: bool | None = None
    """Whether nothing may use this runtime."""
    protocol_versions: list[str] = []
    """Protocols that the server speaks: v1, v2, grpc-v1, grpc-v2."""
    worker_spec: RuntimeWorkerSpec | None = None
    """Set for runtimes that span several nodes."""
    labels: dict[str, str] = {}
    """Labels for the pods."""
    annotations: dict[str, str] = {}
    """Annotations for the pods."""
    grpc_endpoint: str | None = None
    """ModelMesh: where the server takes models, such as port:8085."""
    grpc_data_endpoint: str | None = None
    """ModelMesh: where the server answers gRPC."""
    http_data_endpoint: str | None = None
    """ModelMesh: where the server answers HTTP."""
    replicas: Int | None = None
    """ModelMesh: how many pods."""
    storage_helper: StorageHelper | None = None
    """ModelMesh: the container that downloads models."""
    built_in_adapter: BuiltInAdapter | None = None
    """ModelMesh: the adapter between it and a known server."""
    pod: Annotated[Object, _POD] = {}

    @property
    def is_disabled(self) -> bool:
        return bool(self.disabled)

    @property
    def is_multi_model(self) -> bool:
        return bool(self.multi_model)

    @property
    def is_multi_node(self) -> bool:
        return self.worker_spec is not None

    def speaks(self, protocol: str) -> bool:
        """Returns whether a model of this protocol can be served; a runtime that names no protocol speaks any."""
        return not protocol or not self.protocol_versions or protocol in self.protocol_versions


class ServingRuntimeStatus(Spec):
    """Always empty."""


class ServingRuntime(Kind):
    """How models of some formats are served, for one namespace."""

    spec: ServingRuntimeSpec = ServingRuntimeSpec()
    """Which models, and with which containers."""
    status: ServingRuntimeStatus = ServingRuntimeStatus()
    """Always empty."""


class ClusterServingRuntime(Kind):
    """How models of some formats are served, for every namespace."""

    spec: ServingRuntimeSpec = ServingRuntimeSpec()
    """Which models, and with which containers."""
    status: ServingRuntimeStatus = ServingRuntimeStatus()
    """Always empty."""
