"""The agent beside the model server: it logs payloads, batches requests, and pulls models for multi-model servers."""

from __future__ import annotations

from typing import Any, Final

from isvc.kube import gojson
from isvc.kube.objects import Object, annotations_of, deep_copy, dig
from isvc.serving import annotations as names
from isvc.serving.config import Config
from isvc.serving.containers import (
    MODEL_SERVER,
    QUEUE_PROXY,
    TRANSFORMER,
    add_volume,
    ensure_list,
    find_container,
    mount,
    variable,
)
from isvc.serving.credentials import Lookup, add_service_account_credentials, add_storage_entry
from isvc.serving.pods.logger import LoggerSettings
from isvc.serving.refused import Refused
from isvc.serving.storage.uris import MODEL_PATH, PVC, parse_pvc

AGENT: Final = "agent"
PORT: Final = 9081
MODEL_SERVER_PORT: Final = 8080
CA_VOLUME: Final = "agent-ca-bundle"
CA_FOLDER: Final = "/etc/tls/logger"
MODEL_CONFIG_FOLDER: Final = "/mnt/configs"
LOG_VOLUME: Final = "agent-logs"
CLAIM_FOLDER: Final = "/mnt/pvc"  # where the agent looks for claims

_PULLER: Final = {"--config-dir": names.PULLER_CONFIG_PATH, "--model-dir": names.PULLER_MODEL_DIR}
_BATCHER: Final = {"--max-batchsize": names.BATCHER_MAX_BATCH_SIZE, "--max-latency": names.BATCHER_MAX_LATENCY}


def add_agent(pod: Object, logger: LoggerSettings, config: Config, lookup: Lookup) -> None:
    """Adds the agent if the pod asks for one of its services."""
    annotations, spec = annotations_of(pod), pod["spec"]
    if not annotations.keys() & {names.LOGGER, names.PULLER, names.BATCHER} or find_container(spec, AGENT):
        return
    logs = names.LOGGER in annotations
    agent = _container(pod, config)
    agent["args"] = [
        *_service_arguments(annotations, names.PULLER, "--enable-puller", _PULLER),
        *_service_arguments(annotations, names.BATCHER, "--enable-batcher", _BATCHER),
        *(logger.arguments(pod) if logs else ()),
        "--component-port",
        str(_component_port(spec)),
    ]
    if logs and logger.config.ca_bundle:
        ensure_list(spec, "volumes").append(
            {"name": CA_VOLUME, "configMap": {"name": logger.config.ca_bundle, "optional": True}}
        )
        ensure_list(agent, "volumeMounts").append(mount(CA_VOLUME, CA_FOLDER, read_only=True))
    accounts = [spec.get("serviceAccountName", "")]
    if logs and logger.service_account:
        accounts.append(logger.service_account)
    for account in accounts:
        add_service_account_credentials(agent, spec, account, annotations, config.credentials, lookup)
    if logs and logger.storage_key:
        add_storage_entry(agent, logger.storage_key, annotations, config.credentials, lookup)
    if logs and logger.url(pod).startswith(PVC):
        _mount_claim(spec, agent, parse_pvc(logger.url(pod))[0])
    spec["containers"].append(agent)
    if names.PULLER in annotations:
        _mount_models(spec, annotations)


def _container(pod: Object, config: Config) -> Object:
    """Makes the agent, which answers for the model server: it shares its security context and readiness probe."""
    spec, settings = pod["spec"], config.agent
    env, probe_path = _readiness(spec)
    agent: Object = {
        "name": AGENT,
        **settings.program,
        "args": [],
        "env": env,
        "resources": settings.requirements,
        "ports": [{"name": "agent-port", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": {
            "httpGet": {
                "httpHeaders": [{"name": "K-Network-Probe", "value": "queue"}],
                "port": PORT,
                "path": probe_path,
                "scheme": "HTTP",
            }
        },
    }
    if context := spec["containers"][0].get("securityContext"):
        agent["securityContext"] = deep_copy(context)
    return agent


def _service_arguments(annotations: dict[str, str], service: str, switch: str, settings: dict[str, str]) -> list[str]:
    """Returns what switches a service of the agent on that the annotation of its name asks for, and its settings."""
    if service not in annotations:
        return []
    given = {flag: annotations[name] for flag, name in settings.items() if name in annotations}
    return [switch, *(word for pair in given.items() for word in pair)]


def _component_port(spec: Object) -> int:
    """Returns where the agent passes requests on to: a transformer beside the model server comes first."""
    for name in (TRANSFORMER, MODEL_SERVER):
        container = find_container(spec, name)
        if container is not None:
            return int(dig(container, "ports", 0, "containerPort") or MODEL_SERVER_PORT)
    return MODEL_SERVER_PORT


def _readiness(spec: Object) -> tuple[list[Object], str]:
    """Returns the agent's variables, and the path on which it is asked whether it is ready.

    Behind a queue-proxy the agent takes over that container's variables and becomes what it passes requests on to.
    Otherwise the agent probes the model server as the kubelet would have done.
    """
    queue_proxy = find_container(spec, QUEUE_PROXY)
    if queue_proxy is not None:
        env = [dict(entry) for entry in queue_proxy.get("env") or ()]
        for entry in queue_proxy.get("env") or ():
            if entry["name"] == "USER_PORT":
                entry["value"] = str(PORT)
        return env, "/"
    probe = (find_container(spec, TRANSFORMER) or spec["containers"][0]).get("readinessProbe") or {}
    if not probe.get("httpGet") and not probe.get("tcpSocket"):
        return [], "/"
    env = [variable("SERVING_READINESS_PROBE", gojson.dumps(_probe(probe)))]
    return env, dig(probe, "httpGet", "path") or "/"


def _probe(probe: Object) -> Object:
    """Returns a probe as Go prints it: fields in the order of its structs, nothing that is empty but a port."""
    written: Object = {}
    if get := probe.get("httpGet"):
        written["httpGet"] = _action(get, ("path", "port", "host", "scheme", "httpHeaders"))
    if socket := probe.get("tcpSocket"):
        written["tcpSocket"] = _action(socket, ("port", "host"))
    timing = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    return written | {key: probe[key] for key in (*timing, "terminationGracePeriodSeconds") if probe.get(key)}


def _action(action: Object, fields: tuple[str, ...]) -> Object:
    def print_field(field: str) -> Any:
        value = action.get(field)
        if field != "httpHeaders":
            return value
        return [{"name": header.get("name", ""), "value": header.get("value", "")} for header in value or ()]

    return {field: print_field(field) or 0 for field in fields if field == "port" or print_field(field)}


def _mount_claim(spec: Object, agent: Object, claim: str) -> None:
    """Mounts the volume that payloads are logged to."""
    if not claim:
        raise Refused("the logger's URL pvc:// names no claim")
    add_volume(spec, {"name": LOG_VOLUME, "persistentVolumeClaim": {"claimName": claim}})
    ensure_list(agent, "volumeMounts").append(mount(LOG_VOLUME, f"{CLAIM_FOLDER}/{claim}"))


def _mount_models(spec: Object, annotations: dict[str, str]) -> None:
    """Mounts the folder that the puller fills and the model server reads, and the list of models to pull."""
    for needed in (names.PULLER_MODEL_DIR, names.PULLER_CONFIG_VOLUME):
        if needed not in annotations:
            raise Refused(f"the pod pulls models, but annotation {needed} is missing")
    add_volume(spec, {"name": "model-dir", "emptyDir": {}})
    add_volume(spec, {"name": "model-config", "configMap": {"name": annotations[names.PULLER_CONFIG_VOLUME]}})
    for container in spec["containers"]:
        if container["name"] in (AGENT, MODEL_SERVER):
            ensure_list(container, "volumeMounts").append(mount("model-dir", MODEL_PATH))
        if container["name"] == AGENT:
            ensure_list(container, "volumeMounts").append(mount("model-config", MODEL_CONFIG_FOLDER))
