"""Presets of model servers: vLLM on one node, or spread over a group of nodes; for all of a request or a part of it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Final

from isvc.kube.objects import Object
from isvc.serving.llm.shipped.pods import (
    CERTIFICATE_MOUNT,
    CERTIFICATE_VOLUME,
    CERTIFICATES,
    DRAIN_SECONDS,
    GRACE_SECONDS,
    TRUSTED,
    container,
    drained,
    health,
    scratch,
    variables,
    with_tls,
)

SERVER: Final = "ghcr.io/llm-d/llm-d-cuda:v0.9.0"
SIDECAR: Final = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.10.0"
PORT, BEHIND_SIDECAR = 8000, 8001
ROUTED_BY_MODEL: Final = {"serving.kserve.io/model-based-routing-enabled": "true"}
QUALIFIED: Final = '"publishers/{{ .ObjectMeta.Namespace }}/models/{{ .Spec.Model.Name }}"'
BETWEEN_NODES: Final = ("IPC_LOCK", "SYS_RAWIO", "NET_RAW")


@dataclass(frozen=True, slots=True)
class Workload:
    """Where a template finds the workload in the service's spec."""

    path: str
    port: int = PORT

    @property
    def parallelism(self) -> str:
        return f"{self.path}.Parallelism"

    def if_there(self, text: str, otherwise: str = "") -> str:
        """Text that asks for the prefill workload, which not every service has."""
        if self.path == ".Spec":
            return text
        return f"{{{{ if {self.path} }}}}{text}{{{{ else }}}}{otherwise}{{{{ end }}}}"


MAIN, DECODE, PREFILL = Workload(".Spec"), Workload(".Spec", BEHIND_SIDECAR), Workload(".Spec.Prefill")


def single_node() -> Object:
    return {"annotations": ROUTED_BY_MODEL, "template": _pod(_single(MAIN))}


def decode() -> Object:
    return {"annotations": ROUTED_BY_MODEL, "template": _pod(_single(DECODE)) | {"initContainers": [_sidecar()]}}


def prefill() -> Object:
    return {"prefill": {"annotations": ROUTED_BY_MODEL, "template": _pod(_single(PREFILL))}}


def data_parallel() -> Object:
    return {"annotations": ROUTED_BY_MODEL, **_group(MAIN)}


def decode_data_parallel() -> Object:
    group = _group(DECODE)
    worker = group["worker"]["containers"][0]
    worker["env"] += variables(VLLM_RANDOMIZE_DP_DUMMY_INPUTS="1")
    return {"annotations": ROUTED_BY_MODEL, **group, "template": group["template"] | {"initContainers": [_sidecar()]}}


def prefill_data_parallel() -> Object:
    return {"prefill": {"annotations": ROUTED_BY_MODEL, **_group(PREFILL)}}


def _group(workload: Workload) -> Object:
    """A pod that takes requests, and workers that compute with it."""
    head, worker = _server(workload, _spread(workload, head=True)), _server(workload, _spread(workload, head=False))
    for role in (head, worker):
        role["securityContext"]["capabilities"]["add"] = list(BETWEEN_NODES)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        del worker[probe]
    return {"template": _pod(head, memory="8Gi"), "worker": _pod(worker, memory="8Gi")}


# -- commands -------------------------------------------------------------------------------------------------------


def _single(workload: Workload) -> Object:
    tensor = workload.if_there(
        f"{{{{ if and {workload.parallelism} {workload.parallelism}.Tensor }}}}"
        f"--tensor-parallel-size {{{{ {workload.parallelism}.Tensor }}}}{{{{ end }}}}"
    )
    return _server(workload, _script("rdma") + _versions(workload, "Template") + _serve(workload, tensor))


def _spread(workload: Workload, *, head: bool) -> str:
    parallelism = workload.parallelism
    rank = "0" if head else f"$((${{LWS_WORKER_INDEX:-0}} * {{{{ or {parallelism}.DataLocal 1 }}}}))"
    flags = [
        "--api-server-count ${VLLM_API_SERVER_COUNT:-8}" if head else "--headless",
        f"{{{{ if {parallelism}.Expert }}}}--enable-expert-parallel{{{{ end }}}}",
        f"{{{{ if {parallelism}.Tensor }}}}--tensor-parallel-size {{{{ {parallelism}.Tensor }}}}{{{{ end }}}}",
        f"--data-parallel-size {{{{ or {parallelism}.Data 1 }}}}",
        f"--data-parallel-size-local {{{{ or {parallelism}.DataLocal 1 }}}}",
        "--data-parallel-address $DP_ADDRESS",
        f"--data-parallel-rpc-port {{{{ or {parallelism}.DataRPCPort 5555 }}}}",
        "--data-parallel-start-rank $START_RANK",
    ]
    versions = _versions(workload, "Template" if head else "Worker")
    return _script("leader") + _script("rdma") + f"START_RANK={rank}\n" + versions + _serve(workload, *flags)


def _versions(workload: Workload, pod: str) -> str:
    shutdown = workload.if_there(
        f"{{{{ shutdownTimeout {workload.path}.{pod} {DRAIN_SECONDS} }}}}",
        f"{{{{ shutdownTimeout nil {DRAIN_SECONDS} }}}}",
    )
    transfer = workload.if_there(f"{{{{ kvTransferConfig {workload.path}.KVCacheOffloading }}}}")
    return _script("vllm").replace("@SHUTDOWN@", shutdown).replace("@KV_TRANSFER@", transfer)


def _serve(workload: Workload, *flags: str) -> str:
    """The command is evaluated, so that variables and the pod's arguments may bring flags of their own."""
    names = '"{{ .Spec.Model.Name }}"' + ("" if workload is PREFILL and len(flags) == 1 else f" {QUALIFIED}")
    tls = f"--enable-ssl-refresh --ssl-certfile {CERTIFICATES}/tls.crt --ssl-keyfile {CERTIFICATES}/tls.key"
    lines = [
        'eval "exec vllm serve /mnt/models',
        f"--served-model-name {names}",
        f"--port {workload.port}",
        *flags,
        "$ACCESS_LOG_ARGS $SHUTDOWN_TIMEOUT_ARGS $KV_TRANSFER_ARGS",
        with_tls(tls),
        '$VLLM_ADDITIONAL_ARGS $@"',
    ]
    return " \\\n  ".join(lines)


def _script(name: str) -> str:
    return resources.files("isvc.serving.llm.shipped").joinpath(f"scripts/{name}.sh").read_text()


# -- pods -----------------------------------------------------------------------------------------------------------


def _pod(server: Object, memory: str = "1Gi") -> Object:
    shared_memory = scratch("dshm", medium="Memory", sizeLimit=memory)
    return {
        "containers": [server],
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "volumes": [scratch("home"), scratch("tmp-dir"), shared_memory, scratch("model-cache"), CERTIFICATE_VOLUME],
    }


def _server(workload: Workload, script: str) -> Object:
    mounts = {"home": "/home", "tmp-dir": "/tmp", "dshm": "/dev/shm", "model-cache": "/models"}  # noqa: S108
    port = workload.port
    return container(
        "main",
        SERVER,
        writable=True,
        command=["/bin/bash", "-c", script, "--"],
        env=variables(HOME="/home", VLLM_LOGGING_LEVEL="INFO", HF_HUB_CACHE="/models"),
        ports=[{"containerPort": port, "protocol": "TCP"}],
        lifecycle=drained(),
        livenessProbe=health(port, periodSeconds=10, timeoutSeconds=1, failureThreshold=10),
        readinessProbe=health(port, periodSeconds=1, timeoutSeconds=1, failureThreshold=2),
        startupProbe=health(port, periodSeconds=10, failureThreshold=60),
        volumeMounts=[*({"name": name, "mountPath": path} for name, path in mounts.items()), CERTIFICATE_MOUNT],
    )


def _sidecar() -> Object:
    """Sends the first part of a request to a prefill server, and the rest to the server beside it."""
    pool_namespace = {
        "name": "INFERENCE_POOL_NAMESPACE",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
    }
    return container(
        "llm-d-routing-sidecar",
        SIDECAR,
        writable=True,
        restartPolicy="Always",
        command=[
            "/app/pd-sidecar",
            f"--port={PORT}",
            f"--vllm-port={BEHIND_SIDECAR}",
            "--kv-connector=nixlv2",
            "--enable-ssrf-protection=true",
            "--pool-group=inference.networking.x-k8s.io",
            "--inference-pool={{ .GlobalConfig.InferencePoolNamespacedName }}",
            with_tls("--secure-proxy=true", "--secure-proxy=false"),
            with_tls(f"--cert-path={CERTIFICATES}"),
            with_tls("--enable-tls=decoder"),
            with_tls("--enable-tls=prefiller"),
        ],
        env=[pool_namespace, *variables(SSL_CERT_DIR=TRUSTED)],
        ports=[{"containerPort": PORT, "protocol": "TCP"}],
        livenessProbe=health(PORT, initialDelaySeconds=10, periodSeconds=10, timeoutSeconds=10, failureThreshold=3),
        readinessProbe=health(PORT, initialDelaySeconds=10, periodSeconds=10, timeoutSeconds=5, failureThreshold=10),
        volumeMounts=[CERTIFICATE_MOUNT],
    )
