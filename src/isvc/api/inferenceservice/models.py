"""The model of a predictor: its format, where it is stored, which runtime serves it."""

from __future__ import annotations

from typing import Annotated

from isvc.api.fields import Inline, Required, Schema, Spec, zero
from isvc.api.inferenceservice.components import StorageSpec
from isvc.kube.objects import Object

_CONTAINER = Inline("io.k8s.api.core.v1.Container", required=("name",))


class StorageUri(Spec):
    """One of several things to download."""

    uri: Required[Annotated[str, Schema(minLength=1)]] = zero(str)
    """Where it is."""
    mount_path: Annotated[str, Schema(default="/mnt/models", maxLength=255, pattern="^/.*")] = ""
    """Where the container finds it; /mnt/models unless said otherwise."""


class ModelStorageSpec(StorageSpec):
    """A model in an object store, found through a credential."""

    schema_path: str | None = None
    """Path of the model's schema file in the storage."""


class ConfidentialSpec(Spec):
    """Serving an encrypted model inside a trusted execution environment."""

    enabled: Required[bool] = zero(bool)
    """Whether the model is encrypted, and to be decrypted after download."""
    resource_id: str | None = None
    """The key's name at the key broker: kbs:///<repository>/<type>/<tag>."""


class PredictorExtensionSpec(Spec):
    """A model and the container that serves it. `container` holds the container's own fields, written beside these."""

    storage_uri: str | None = None
    """Where the model is stored, for example gs://bucket/model."""
    runtime_version: str | None = None
    """Tag of the runtime's image."""
    protocol_version: str | None = None
    """Protocol that the server speaks: v1, v2, grpc-v1 or grpc-v2."""
    storage: ModelStorageSpec | None = None
    """The model in an object store, instead of storageUri."""
    confidential: ConfidentialSpec | None = None
    """Set when the model is encrypted."""
    container: Annotated[Object, _CONTAINER] = {}


class ModelFormat(Spec):
    """What kind of model it is."""

    name: Required[str] = zero(str)
    """For example sklearn, onnx or huggingface."""
    version: str | None = None
    """Version of the format, such as 1 or 1.2."""


class ModelSpec(PredictorExtensionSpec):
    """A model of any format, served by a ServingRuntime."""

    model_format: Required[ModelFormat] = zero(ModelFormat)
    """What kind of model it is."""
    runtime: str | None = None
    """Name of the runtime to use. Left out, a runtime that supports the format is chosen."""


class ExplainerExtensionSpec(Spec):
    """An explainer and its container. `container` holds the container's own fields, written beside these."""

    storage_uri: str = ""
    """Where the explainer's model is stored."""
    runtime_version: str | None = None
    """Tag of the explainer's image."""
    config: dict[str, str] = {}
    """Settings of the explainer."""
    storage: ModelStorageSpec | None = None
    """The model in an object store, instead of storageUri."""
    container: Annotated[Object, _CONTAINER] = {}


class ARTExplainerSpec(ExplainerExtensionSpec):
    """The Adversarial Robustness Toolbox."""

    type: str = ""
    """Which attack explains: SquareAttack."""
