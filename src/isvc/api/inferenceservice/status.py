"""The status of an InferenceService."""

from __future__ import annotations

from typing import Annotated, ClassVar

from isvc.api.fields import ATOMIC, Int, Int32, Int64, Required, Schema, Spec, Timestamp, zero
from isvc.api.meta import Addressable, Status

_MODEL_STATES = ["", "Pending", "Standby", "Loading", "Loaded", "FailedToLoad"]
_TRANSITIONS = ["", "UpToDate", "InProgress", "BlockedByFailedLoad", "InvalidSpec"]
_FAILURES = [
    "ModelLoadFailed",
    "RuntimeUnhealthy",
    "RuntimeDisabled",
    "NoSupportingRuntime",
    "RuntimeNotRecognized",
    "InvalidPredictorSpec",
]


class TrafficTarget(Spec):
    """Which revision gets how much of the traffic."""

    tag: str = ""
    """Name under which this revision can be reached by itself."""
    revision_name: str = ""
    """Name of the revision."""
    configuration_name: str = ""
    """Name of the configuration whose newest revision is meant."""
    latest_revision: bool | None = None
    """Whether this is the newest revision."""
    percent: Int64 | None = None
    """Its share of traffic in percent."""
    url: str | None = None
    """Where it answers by itself."""


class ComponentStatus(Spec):
    """One component's revisions and addresses."""

    latest_ready_revision: str = ""
    """Newest revision that is ready."""
    latest_created_revision: str = ""
    """Newest revision."""
    previous_rolledout_revision: str = ""
    """Revision that had all traffic before."""
    latest_rolledout_revision: str = ""
    """Revision that has had all traffic last."""
    traffic: list[TrafficTarget] = []
    """How traffic is divided."""
    url: str | None = None
    """Where the component answers."""
    rest_url: str | None = None
    """Where it answers REST, when that differs."""
    grpc_url: str | None = None
    """Where it answers gRPC."""
    address: Addressable | None = None
    """Where it answers inside the cluster."""


class ModelRevisionStates(Spec):
    """How far the models are loaded."""

    active_model_state: Required[Annotated[str, Schema(default="Pending", enum=_MODEL_STATES)]] = zero(str)
    """State of the model that answers now."""
    target_model_state: Annotated[str, Schema(default="", enum=_MODEL_STATES)] = ""
    """State of the model that is to answer next."""


class ModelCopies(Spec):
    """How many pods have the model."""

    failed_copies: Required[Annotated[Int, Schema(default=0)]] = zero(int)
    """Pods that failed to load it."""
    total_copies: Int = 0
    """All pods that should have it."""


class FailureInfo(Spec):
    """Why loading failed."""

    location: str = ""
    """Which pod."""
    reason: Annotated[str, Schema(enum=_FAILURES)] = ""
    """One word."""
    message: str = ""
    """What the container said."""
    model_revision_name: str = ""
    """Which revision."""
    time: Timestamp | None = None
    """When."""
    exit_code: Int32 = 0
    """With which code the container ended."""


class ModelStatus(Spec):
    """How far the predictor's model is."""

    transition_status: Required[Annotated[str, Schema(default="UpToDate", enum=_TRANSITIONS)]] = zero(str)
    """Whether what answers is what the spec asks for."""
    states: ModelRevisionStates | None = None
    """How far the models are loaded."""
    last_failure_info: FailureInfo | None = None
    """The newest failure."""
    copies: ModelCopies | None = None
    """How many pods have the model."""


class CanaryStatus(Spec):
    """What one canary has become."""

    name: Required[str] = zero(str)
    """Name of the canary's predictor."""
    traffic_percent: Required[Int32] = zero(int)
    """Its share of traffic in percent."""
    ready: Required[bool] = zero(bool)
    """Whether it is ready for traffic."""
    model_status: ModelStatus | None = None
    """How far its model is."""


class InferenceServiceStatus(Status):
    """What is there."""

    __schema__: ClassVar = {"x-kubernetes-preserve-unknown-fields": True}

    address: Addressable | None = None
    """Where the service answers inside the cluster."""
    url: str | None = None
    """Where the service answers."""
    components: dict[str, ComponentStatus] = {}
    """Revisions and addresses by component."""
    model_status: ModelStatus | None = None
    """How far the model is."""
    canary_statuses: Annotated[list[CanaryStatus], ATOMIC] = []
    """What the canaries have become."""
    deployment_mode: str = ""
    """How it is deployed: Standard, Knative or ModelMesh."""
    serving_runtime_name: str = ""
    """The ServingRuntime in use."""
    cluster_serving_runtime_name: str = ""
    """The ClusterServingRuntime in use."""
