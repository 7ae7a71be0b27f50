"""InferenceService: a model, and optionally what transforms its inputs and explains its answers."""

from __future__ import annotations

from typing import Annotated

from isvc.api.fields import ATOMIC, Inline, Int, Int32, Loose, Required, Schema, Spec, zero
from isvc.api.inferenceservice.components import ComponentExtensionSpec
from isvc.api.inferenceservice.models import ARTExplainerSpec, ModelSpec, PredictorExtensionSpec, StorageUri
from isvc.api.inferenceservice.status import InferenceServiceStatus
from isvc.api.meta import Kind
from isvc.kube.objects import Object

_POD = Inline(
    "io.k8s.api.core.v1.PodSpec",
    plain=(
        "containers",
        "ephemeralContainers",
        "hostAliases",
        "imagePullSecrets",
        "initContainers",
        "readinessGates",
        "tolerations",
        "volumes",
    ),
)
_StorageUris = Annotated[list[StorageUri], ATOMIC, Schema(minItems=1)]


class WorkerSpec(Spec):
    """The workers of a model that spans several nodes. `pod` holds the pod's own fields, written beside these."""

    pipeline_parallel_size: Int | None = None
    """Over how many nodes the model is spread, head included."""
    tensor_parallel_size: Int | None = None
    """How many GPUs each node uses."""
    pod: Annotated[Object, _POD] = {}


class PredictorSpec(ComponentExtensionSpec):
    """Serves the model. Exactly one of `model`, a framework, or a container of one's own.

    `pod` holds the pod's own fields (containers, volumes, nodeSelector, ...), written beside these.
    """

    name: Annotated[str, Schema(pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$")] = ""
    """Names this variant: its workload is then called <service>-<name>-predictor."""
    sklearn: PredictorExtensionSpec | None = None
    """A scikit-learn model. Older spelling of model with format sklearn."""
    xgboost: PredictorExtensionSpec | None = None
    """An XGBoost model. Older spelling of model with format xgboost."""
    tensorflow: PredictorExtensionSpec | None = None
    """A TensorFlow model. Older spelling of model with format tensorflow."""
    pytorch: PredictorExtensionSpec | None = None
    """A PyTorch model. Older spelling of model with format pytorch."""
    triton: PredictorExtensionSpec | None = None
    """A model for Triton. Older spelling of model with format triton."""
    onnx: PredictorExtensionSpec | None = None
    """An ONNX model. Older spelling of model with format onnx."""
    huggingface: PredictorExtensionSpec | None = None
    """A Hugging Face model. Older spelling of model with format huggingface."""
    pmml: PredictorExtensionSpec | None = None
    """A PMML model. Older spelling of model with format pmml."""
    lightgbm: PredictorExtensionSpec | None = None
    """A LightGBM model. Older spelling of model with format lightgbm."""
    paddle: PredictorExtensionSpec | None = None
    """A Paddle model. Older spelling of model with format paddle."""
    model: ModelSpec | None = None
    """A model of any format, served by a ServingRuntime."""
    storage_uris: _StorageUris | None = None
    """Several things to download, each with its own path."""
    storage_container_name: str | None = None
    """Name of the ClusterStorageContainer that downloads the model, instead of the one matching its URI."""
    worker_spec: WorkerSpec | None = None
    """Set to spread the model over several nodes."""
    pod: Annotated[Object, _POD] = {}


class TransformerSpec(ComponentExtensionSpec):
    """Works on inputs before the predictor sees them, and on its answers. `pod` holds the pod's own fields."""

    storage_uris: _StorageUris | None = None
    """Several things to download, each with its own path."""
    pod: Annotated[Object, _POD] = {}


class ExplainerSpec(ComponentExtensionSpec):
    """Explains predictions. Either `art` or a container of one's own. `pod` holds the pod's own fields."""

    art: ARTExplainerSpec | None = None
    """The Adversarial Robustness Toolbox."""
    storage_uris: _StorageUris | None = None
    """Several things to download, each with its own path."""
    pod: Annotated[Object, _POD] = {}


class CanarySpec(Spec):
    """A second version of the predictor that gets part of the traffic."""

    predictor: Required[PredictorSpec] = zero(PredictorSpec)
    """The version to try. Its name is required."""
    traffic_percent: Required[Annotated[Int32, Schema(minimum=0, maximum=100)]] = zero(int)
    """Its share of traffic in percent; 0 runs it without traffic."""


class InferenceServiceSpec(Spec):
    """What is wanted."""

    predictor: Required[Loose[PredictorSpec]] = zero(PredictorSpec)
    """Serves the model."""
    explainer: Loose[ExplainerSpec] | None = None
    """Explains predictions."""
    transformer: Loose[TransformerSpec] | None = None
    """Works on inputs and outputs of the predictor."""
    canary: Annotated[list[CanarySpec], ATOMIC] = []
    """Further versions of the predictor that get part of the traffic, in Standard mode."""


class InferenceService(Kind):
    """A model that answers predictions, with all it takes to run, scale and reach it."""

    spec: InferenceServiceSpec = InferenceServiceSpec()
    """What is wanted."""
    status: InferenceServiceStatus = InferenceServiceStatus()
    """What is there."""
