"""The Job that downloads a model to a node: KServe's, into a folder beside the model, on exactly this node."""

from __future__ import annotations

import hashlib
from typing import Final

from isvc.api.localmodel import LocalModelInfo, download_claim
from isvc.controllers.localmodelnode.disk import incoming_path
from isvc.controllers.localmodelnode.downloads import ATTEMPT, VOLUME
from isvc.controllers.localmodelnode.observe import Observed
from isvc.controllers.localmodelnode.space import Space
from isvc.kube.objects import Object, deep_copy
from isvc.kube.resource import JOBS
from isvc.serving.config import Config
from isvc.serving.containers import ensure_list, mount, set_env
from isvc.serving.credentials import Lookup, add_service_account_credentials, add_storage_spec_credentials
from isvc.serving.environment import ModelNode
from isvc.serving.storage.containers import DOWNLOAD_JOB, choose_storage_container
from isvc.serving.storage.init_container import DEFAULT_IMAGE
from isvc.serving.storage.uris import MODEL_PATH, storage_key

CONTAINER: Final = "kserve-localmodel-download"
MAX_BYTES: Final = "STORAGE_MAX_BYTES"
"""Tells our storage initializer what is left of the group's `storageLimit`; KServe's does not know it."""
JOB_TTL: Final = 3600
_LONGEST_LABEL: Final = 63


def download_job(observed: Observed, model: LocalModelInfo, space: Space, attempt: int) -> Object:
    """Returns the Job. Raises `Refused` where credentials or the storage container cannot work."""
    config, place = observed.config, observed.place
    namespace, ttl = place.job_namespace, config.local_model.job_ttl_seconds_after_finished
    container = _container(model, config, observed.storage_containers)
    pod_spec: Object = {
        "affinity": _exactly(place.name),
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "restartPolicy": "Never",
        "securityContext": _identity(config, place),
        "volumes": [{"name": VOLUME, "persistentVolumeClaim": {"claimName": claim_of(model, space.group)}}],
    }
    if model.service_account_name:
        pod_spec["serviceAccountName"] = model.service_account_name
    _add_credentials(model, container, pod_spec, config, Lookup(namespace, observed.answers))
    if space.left is not None:
        set_env(container, MAX_BYTES, str(space.left))
    labels = labels_of_download(model, place.name)
    return JOBS.manifest(
        {
            "name": _name(model, place.name, attempt),
            "namespace": namespace,
            "labels": labels,
            "annotations": {ATTEMPT: str(attempt)},
        },
        spec={
            "backoffLimit": 0,  # the program tries again, and says meanwhile what was wrong
            "ttlSecondsAfterFinished": JOB_TTL if ttl is None else ttl,
            "template": {"metadata": {"labels": labels}, "spec": pod_spec},
        },
    )


def claim_of(model: LocalModelInfo, group: str) -> str:
    """Returns the claim that the controller of caches makes for downloads."""
    return download_claim(model.model_name, model.namespace or "", group)


def labels_of_download(model: LocalModelInfo, node: str) -> dict[str, str]:
    namespace = {"modelNamespace": model.namespace} if model.namespace else {}
    return {"model": label_value(model.model_name), "node": label_value(node), **namespace}


def label_value(name: str) -> str:
    """Returns a name as the value of a label, which is shorter than names may be."""
    if len(name) <= _LONGEST_LABEL:
        return name
    return f"{name[:54].rstrip('-.')}-{_digest(name)}"


def _name(model: LocalModelInfo, node: str, attempt: int) -> str:
    whole = f"{model.namespace}/{model.model_name}/{model.source_model_uri}/{node}/{attempt}"
    return f"{f'{model.model_name}-{node}'.replace('.', '-')[:54].rstrip('-')}-{_digest(whole)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _container(model: LocalModelInfo, config: Config, storage_containers: list[Object]) -> Object:
    chosen = choose_storage_container(model.source_model_uri, storage_containers, workload=DOWNLOAD_JOB)
    default = {**config.storage_initializer.program, "image": config.storage_initializer.image or DEFAULT_IMAGE}
    container: Object = deep_copy(chosen["container"]) if chosen and chosen.get("container") else default
    return {
        "name": CONTAINER,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **container,
        "args": [_literal(model.source_model_uri), MODEL_PATH],
        "volumeMounts": [mount(VOLUME, MODEL_PATH, sub_path=incoming_path(storage_key(model.source_model_uri)))],
    }


def _literal(text: str) -> str:
    """Returns a text in which Kubernetes fills in no variable: whoever writes a cache may not read the credentials."""
    return text.replace("$", "$$")


def _identity(config: Config, place: ModelNode) -> Object:
    """Returns as whom to download: as the user who will have to remove it, and in the group that may read it."""
    ids = {"runAsUser": place.user or None, "fsGroup": config.local_model.fs_group}
    return {name: number for name, number in ids.items() if number is not None}


def _exactly(node: str) -> Object:
    """Returns what binds a pod to the node of that name, whatever its hostname label says."""
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [fields]}}}


def _add_credentials(
    model: LocalModelInfo, container: Object, pod_spec: Object, config: Config, lookup: Lookup
) -> None:
    """Adds what a cache names, and nothing otherwise."""
    if model.storage is not None and model.storage.key is not None:
        given = model.storage.parameters or {}
        parameters = {_literal(name): _literal(value) for name, value in given.items()}
        add_storage_spec_credentials(container, model.storage.key, parameters, {}, config.credentials, lookup)
    elif model.service_account_name or model.storage is not None:
        add_service_account_credentials(container, pod_spec, model.service_account_name, {}, config.credentials, lookup)
    if not container.get("env"):
        container.pop("env", None)
    ensure_list(pod_spec, "volumes")
