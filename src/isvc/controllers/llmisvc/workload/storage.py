"""Brings the model, and the adapters that are downloaded, into a pod.

Claims and images are mounted. Hugging Face and S3 are downloaded by one init container, the storage initializer, which
a template may customize by a container of that name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_PVC_NAME, LOCAL_MODEL_SOURCE_URI
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload import lora
from isvc.controllers.llmisvc.workload.lora import Adapter
from isvc.controllers.llmisvc.workload.phases import CONTAINER
from isvc.kube.objects import Object, annotations_of, labels_of, name_of
from isvc.serving.config.sections import StorageInitializerConfig
from isvc.serving.containers import add_missing_env, ensure_list, find_init_container, set_env, variable
from isvc.serving.credentials import add_service_account_credentials
from isvc.serving.refused import MissingSecret, Refused
from isvc.serving.storage import Source, init_container, oci
from isvc.serving.storage.containers import merge_container
from isvc.serving.storage.initialize import PVC_VOLUME
from isvc.serving.storage.uris import MODEL_PATH, OCI, PVC, OciUri, cached_uri, common_parent, parse_pvc

HUGGING_FACE: Final = "hf://"
S3: Final = "s3://"
OCI_NATIVE: Final = "oci+native://"
DEFAULT_ACCOUNT: Final = "default"
_TOKENIZER_FILES: Final = (
    '["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "merges.txt",'
    ' "config.json", "generation_config.json"]'
)


@dataclass(frozen=True, slots=True)
class Target:
    """Who reads the model: a container, the path at which it looks, and the adapters it loads beside the model."""

    container: str = CONTAINER
    path: str = MODEL_PATH
    adapters: tuple[Adapter, ...] = ()
    tokenizer_only: bool = False


def attach_model(observed: Observed, pod: Object, target: Target, account: Object | None, live: Object | None) -> None:
    """Changes the pod, which is the caller's own copy, so that the target finds its model.

    `account` is the pod's ServiceAccount if it names one, `live` the pod as it is deployed. Raises `Refused` with what
    is wrong, or `Needs` with what has to be known.
    """
    uri = _model_location(observed)
    if not uses_initializer(observed):
        return
    downloads = [adapter.source for adapter in target.adapters if adapter.is_downloaded]
    customized = _take_initializer(pod)
    if uri.startswith(PVC):
        claim, path = parse_pvc(uri)
        init_container.mount_model(
            pod, target.container, target.path, PVC_VOLUME, claim=claim, sub_path=path, read_only=True
        )
    elif uri.startswith((OCI, OCI_NATIVE)):
        _provide_image(observed, pod, uri, target)
    elif uri.startswith((HUGGING_FACE, S3)):
        downloads = [Source(uri), *downloads]
    else:
        raise Refused(f"unsupported schema in model URI: {uri}")
    if downloads:
        _download(observed, pod, downloads, target, customized, account, live)
    lora.attach(observed, pod, target.container, target.adapters)


def uses_initializer(observed: Observed) -> bool:
    """Returns whether the controller brings the model at all, or leaves that to the server."""
    initializer = observed.spec.storage_initializer
    return initializer is None or initializer.enabled is not False


def ignores_arguments(observed: Observed, pod: Object) -> bool:
    """Returns whether a template gives the storage initializer arguments or a command, which it must not."""
    given = find_init_container(pod, init_container.NAME) or {}
    is_downloaded = model_uri(observed).startswith((HUGGING_FACE, S3)) and LOCAL_MODEL not in labels_of(observed.raw)
    return is_downloaded and uses_initializer(observed) and bool(given.get("args") or given.get("command"))


def model_uri(observed: Observed) -> str:
    return observed.spec.model.uri


def _model_location(observed: Observed) -> str:
    """Returns where the model is: at its URI, or on the claim of a node-local cache."""
    uri = model_uri(observed)
    if "://" not in uri:
        raise Refused(f"invalid model URI: {uri}")
    if LOCAL_MODEL not in labels_of(observed.raw):
        return uri
    annotations = annotations_of(observed.raw)
    for key in (LOCAL_MODEL_SOURCE_URI, LOCAL_MODEL_PVC_NAME):
        if key not in annotations:
            raise Refused(f"LLMInferenceService {observed.namespace}/{observed.name}: annotation {key} not found")
    return cached_uri(uri, annotations[LOCAL_MODEL_SOURCE_URI], annotations[LOCAL_MODEL_PVC_NAME])


def _provide_image(observed: Observed, pod: Object, uri: str, target: Target) -> None:
    config = observed.config.storage_initializer
    mode = oci.NATIVE if uri.startswith(OCI_NATIVE) else config.oci_mode
    if not mode:
        raise Refused("OCI modelcars is not enabled")
    if mode != oci.NATIVE:
        mode = oci.MODELCAR  # images are not fetched for model servers of this kind
    image = OciUri(mode, OCI + uri.partition("://")[2])
    in_system_namespace = observed.namespace == observed.system_namespace
    oci.provide(pod, oci.Image(image, target.path), target.container, config, in_system_namespace)


def _take_initializer(pod: Object) -> Object | None:
    """Removes the container by which a template customizes the storage initializer, and gives it."""
    found = find_init_container(pod, init_container.NAME)
    if found is not None:
        pod["initContainers"] = [container for container in pod["initContainers"] if container is not found]
    return found


def _download(
    observed: Observed,
    pod: Object,
    sources: list[Source],
    target: Target,
    customized: Object | None,
    account: Object | None,
    live: Object | None,
) -> None:
    """Adds one init container for all of them; its folder is shared with the target, which may only read."""
    deployed = find_init_container(live or {}, init_container.NAME)
    container = _initializer(observed, sources, customized, deployed)
    ensure_list(pod, "initContainers").append(container)
    folder = common_parent([source.path for source in sources])
    alone = len(sources) == 1 and sources[0].path == MODEL_PATH
    init_container.mount_model(pod, init_container.NAME, folder, oci.PROVISION_VOLUME, read_only=False)
    init_container.mount_model(
        pod, target.container, target.path if alone else folder, oci.PROVISION_VOLUME, read_only=True
    )
    from_hub = any(source.uri.startswith(HUGGING_FACE) for source in sources)
    known = account or observed.lookup.service_account(DEFAULT_ACCOUNT)
    if known is not None:
        _add_credentials(observed, pod, container, known)
        if from_hub and _may_tune_downloads(deployed):
            init_container.add_hugging_face_defaults(container)
    if not (alone and from_hub):
        _mount_ca_bundle(observed, pod, container)
    if known is not None and target.tokenizer_only:
        add_missing_env(container, [variable("STORAGE_ALLOW_PATTERNS", _TOKENIZER_FILES)])


def _initializer(
    observed: Observed, sources: list[Source], customized: Object | None, deployed: Object | None
) -> Object:
    arguments = [argument for source in sources for argument in source]
    built = init_container.init_container(_with_deployed_image(observed, deployed), arguments)
    confidential = observed.spec.model.confidential
    if confidential is not None and confidential.enabled:
        set_env(built, "CONFIDENTIAL_ENABLED", "true")
        if confidential.resource_id:
            set_env(built, "CONFIDENTIAL_RESOURCE_ID", confidential.resource_id)
    if customized is None:
        return built
    merged = merge_container(built, customized)
    merged.pop("command", None)
    return {**merged, "name": init_container.NAME, "args": arguments}


def _with_deployed_image(observed: Observed, deployed: Object | None) -> StorageInitializerConfig:
    """The image stays the one that is deployed: an upgrade of the control plane must not restart model servers."""
    config = observed.config.storage_initializer
    image = (deployed or {}).get("image")
    return msgspec.structs.replace(config, image=image) if image else config


def _may_tune_downloads(deployed: Object | None) -> bool:
    """Returns False where that would restart servers whose download came without these variables."""
    return deployed is None or any(entry["name"].startswith("HF_") for entry in deployed.get("env") or ())


def _add_credentials(observed: Observed, pod: Object, container: Object, account: Object) -> None:
    name = name_of(account)
    lookup = replace(observed.lookup, account_in_memory=lambda _: account)
    annotations = annotations_of(observed.raw)
    try:
        add_service_account_credentials(container, pod, name, annotations, observed.config.credentials, lookup)
    except MissingSecret as error:
        raise Refused(f'secrets "{error.name}" not found') from error


def _mount_ca_bundle(observed: Observed, pod: Object, container: Object) -> None:
    in_system_namespace = observed.namespace == observed.system_namespace
    bundle = init_container.ca_bundle(container, observed.config.storage_initializer, in_system_namespace)
    if bundle:
        init_container.mount_ca_bundle(pod, container, *bundle)
