"""The runtimes and the storage container that an installation on a cluster brings: KServe's, with its images.

Names, model formats, priorities, ports and arguments are KServe's, so that services choose the same runtime as with it.
A tag of `latest` stands for the release that the chart names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, CLUSTER_STORAGE_CONTAINERS
from isvc.kube.objects import Object
from isvc.serving.containers import MODEL_SERVER
from isvc.serving.runtimes import SERVER_TYPE

_RESOURCES: Final = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}
_LARGER: Final = {"requests": {"cpu": "2", "memory": "6Gi"}, "limits": {"cpu": "4", "memory": "12Gi"}}
_CONFINED: Final = {"allowPrivilegeEscalation": False, "privileged": False, "capabilities": {"drop": ["ALL"]}}
_NOT_ROOT: Final = {**_CONFINED, "runAsNonRoot": True}
_USER_1000: Final = {**_NOT_ROOT, "runAsUser": 1000}  # images that name no user
_KSERVE_ARGUMENTS: Final = ("--model_name={{.Name}}", "--model_dir=/mnt/models", "--http_port=8080")
_SHARED_MEMORY: Final = {"name": "devshm", "emptyDir": {"medium": "Memory"}}


def shipped_runtimes() -> Iterator[Object]:
    """All of them, then the storage container."""
    yield from _of_kserve()
    yield from _of_others()
    yield from _of_language_models()
    yield _storage_container()


def _of_kserve() -> Iterator[Object]:
    """Served by KServe's own model servers."""
    threads = (*_KSERVE_ARGUMENTS, "--nthread=1")
    framework = (*_KSERVE_ARGUMENTS, "--framework={{.Annotations.modelFormat}}", "--nthread=1")
    several = [("sklearn", "1"), ("xgboost", "2"), ("lightgbm", "4")]
    yield _kserve("sklearnserver", _KSERVE_ARGUMENTS, _formats(("sklearn", "1")))
    yield _kserve("xgbserver", threads, _formats(("xgboost", "2")))
    yield _kserve("lgbserver", threads, _formats(("lightgbm", "4")))
    yield _kserve("paddleserver", _KSERVE_ARGUMENTS, _formats(("paddle", "2")))
    yield _kserve("pmmlserver", _KSERVE_ARGUMENTS, _formats(("pmml", "3"), ("pmml", "4")))
    yield _kserve("autogluonserver", _KSERVE_ARGUMENTS, _formats(("autogluon", "1")))
    yield _kserve("predictiveserver", framework, _formats(*several, priority=3, automatic=False))


def _kserve(name: str, arguments: tuple[str, ...], formats: list[Object]) -> Object:
    container = _container(f"kserve/{name}:latest", args=list(arguments))
    return _runtime(name, formats, ("v1", "v2"), container)


def _of_others() -> Iterator[Object]:
    """Served by the model servers of other projects."""
    tensorflow = [("tensorflow", "1"), ("tensorflow", "2")]
    mlserver = [(n, v) for n, vs in (("sklearn", "01"), ("xgboost", "12"), ("lightgbm", "34")) for v in vs]
    environment = {
        "MLSERVER_MODEL_IMPLEMENTATION": "{{.Labels.modelClass}}",
        "MLSERVER_HTTP_PORT": "8080",
        "MLSERVER_GRPC_PORT": "9000",
    }
    yield _runtime(
        "mlserver",
        _formats(*mlserver, priority=2) + _formats(("mlflow", "1"), ("mlflow", "2")),
        ("v2",),
        _container("docker.io/seldonio/mlserver:1.5.0", env=_variables(environment)),
    )
    arguments = ["--model_name={{.Name}}", "--port=9000", "--rest_api_port=8080", "--model_base_path=/mnt/models"]
    yield _runtime(
        "tensorflow-serving",
        _formats(*tensorflow, priority=2),
        ("v1", "grpc-v1"),
        _container(
            "tensorflow/serving:2.6.2",
            command=["/usr/bin/tensorflow_model_server"],
            args=[*arguments, "--rest_api_timeout_in_ms=60000"],
            securityContext=_USER_1000,
        ),
    )
    ports = ["--grpc-port=9000", "--http-port=8080", "--allow-grpc=true", "--allow-http=true"]
    by_hand = [{"name": "pytorch", "version": "1"}]
    yield _runtime(
        "tritonserver",
        _formats(("tensorrt", "8"), *tensorflow, ("onnx", "1")) + by_hand + _formats(("triton", "2")),
        ("v2", "grpc-v2"),
        _container(
            "nvcr.io/nvidia/tritonserver:23.05-py3",
            args=["tritonserver", "--model-store=/mnt/models", *ports],
            securityContext=_USER_1000,
        ),
        metrics="8002",
    )
    model_store = ["--model-store=/mnt/models/model-store", "--ts-config=/mnt/models/config/config.properties"]
    yield _runtime(
        "torchserve",
        _formats(("pytorch", "1"), priority=2),
        ("v1", "v2", "grpc-v2"),
        _container(
            "pytorch/torchserve-kfs:0.9.0",
            args=["torchserve", "--start", *model_store],
            env=_variables({"TS_SERVICE_ENVELOPE": "{{.Labels.serviceEnvelope}}"}),
            securityContext=_USER_1000,
        ),
        metrics="8082",
    )


def _of_language_models() -> Iterator[Object]:
    mount = [{"name": "devshm", "mountPath": "/dev/shm"}]  # noqa: S108
    cache = {"LMCACHE_USE_EXPERIMENTAL": "True"}
    written = {"HF_HOME": "/tmp", "VLLM_CONFIG_ROOT": "/tmp", "VLLM_WORKER_MULTIPROC_METHOD": "spawn"}  # noqa: S108
    models = {"httpGet": {"path": "/v1/models", "port": 8080}, "successThreshold": 1}
    pod: dict[str, Any] = {"volumes": [_SHARED_MEMORY], "hostIPC": False}
    yield _runtime(
        "huggingfaceserver",
        _formats(("huggingface", "1")),
        ("v2", "v1"),
        _container(
            "kserve/huggingfaceserver:latest",
            args=["--model_name={{.Name}}"],
            env=_variables(cache),
            volumeMounts=mount,
        ),
        **pod,
    )
    yield _runtime(
        "vllmserver",
        _formats(("vLLM", "1")),
        (),
        _container(
            "vllm/vllm-openai:latest",
            command=["python", "-m", "vllm.entrypoints.openai.api_server"],
            args=["--port=8080", "--served-model-name={{.Name}}", "--model=/mnt/models"],
            env=_variables(cache | written),
            volumeMounts=mount,
            securityContext=_CONFINED,
            readinessProbe={**models, "failureThreshold": 3, "periodSeconds": 10, "timeoutSeconds": 5},
            startupProbe={
                **models,
                "failureThreshold": 60,
                "periodSeconds": 30,
                "timeoutSeconds": 10,
                "initialDelaySeconds": 30,
            },
        ),
        **pod,
    )
    yield _multinode()


def _multinode() -> Object:
    """Hugging Face's server over several nodes: a head and workers that meet through Ray."""
    image = "kserve/huggingfaceserver:latest-gpu"
    head_address = "${HEAD_SVC}.${POD_NAMESPACE}.svc.cluster.local"
    serve = (
        "model=${MODEL_DIR:-${MODEL_ID:-}}\n"
        "export RAY_ADDRESS=${POD_IP}:${RAY_PORT}\n"
        "ray start --head --disable-usage-stats --include-dashboard false\n"
        f"{_health('registered_nodes --retries 200', 'runtime_start')}\n"
        "exec python -m huggingfaceserver ${model:+--model_dir=$model} --tensor-parallel-size=${TENSOR_PARALLEL_SIZE}"
        ' --pipeline-parallel-size=${PIPELINE_PARALLEL_SIZE} "$0" "$@"\n'
    )
    join = (
        f"head={head_address}:6379\n"
        'until ray health-check --address "$head" >/dev/null 2>&1; do\n'
        '  echo "waiting for the head of the group at $head"\n'
        "  sleep 5\n"
        "done\n"
        'exec ray start --address="$head" --block\n'
    )
    url = "--health_check_url http://localhost:8080"
    both = f"registered_node_and_runtime_health {url}"
    loaded = f"registered_node_and_runtime_models --runtime_url http://{head_address}:8080/v1/models"
    worker_address = f"export RAY_ADDRESS={head_address}:6379\n"
    shared = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "3Gi"}}
    mount = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108
    fixed = {"RAY_PORT": "6379", "VLLM_CONFIG_ROOT": "/tmp", "HF_HUB_CACHE": "/tmp"}  # noqa: S108
    head = _container(
        image,
        command=["bash", "-c", serve],
        args=["--model_name={{.Name}}"],
        env=[*_variables(fixed), _field("POD_NAMESPACE", "metadata.namespace"), _field("POD_IP", "status.podIP")],
        resources=_LARGER,
        securityContext=None,
        volumeMounts=mount,
        livenessProbe=_probe(_health(both, "head_liveness"), **_STEADY),
        readinessProbe=_probe(_health(f"runtime_health {url}", "head_readiness"), **_STEADY),
        startupProbe=_probe(_health(both, "head_startup"), **_SLOW),
    )
    worker = _container(
        image,
        name="worker-container",
        command=["bash", "-c", join],
        env=[_field("POD_NAME", "metadata.name"), _field("POD_NAMESPACE", "metadata.namespace")],
        resources=_LARGER,
        securityContext=None,
        volumeMounts=mount,
        livenessProbe=_probe(worker_address + _health("registered_nodes", "worker_liveness"), **_STEADY),
        startupProbe=_probe(worker_address + _health(loaded, "worker_startup"), **_SLOW),
    )
    workers = {"pipelineParallelSize": 1, "tensorParallelSize": 1, "containers": [worker], "volumes": [shared]}
    formats = _formats(("huggingface", "1"), priority=2)
    runtime = _runtime("huggingfaceserver-multinode", formats, ("v2", "v1"), head, volumes=[shared], workerSpec=workers)
    runtime["metadata"]["annotations"][SERVER_TYPE] = "huggingfaceserver"
    return runtime


_STEADY: Final = {"failureThreshold": 2, "periodSeconds": 5, "timeoutSeconds": 15}
_SLOW: Final = {"failureThreshold": 40, "periodSeconds": 30, "timeoutSeconds": 30, "initialDelaySeconds": 60}


def _health(check: str, probe: str) -> str:
    return f"python ./huggingfaceserver/health_check.py {check} --probe_name {probe}"


def _probe(script: str, **times: int) -> Object:
    return {"exec": {"command": ["bash", "-c", script]}, "successThreshold": 1, **times}


def _runtime(
    name: str,
    formats: list[Object],
    protocols: tuple[str, ...],
    container: Object,
    *,
    metrics: str = "8080",
    **pod: Any,
) -> Object:
    where = {"prometheus.kserve.io/port": metrics, "prometheus.kserve.io/path": "/metrics"}
    spec: Object = {"annotations": where, "supportedModelFormats": formats}
    if protocols:
        spec["protocolVersions"] = list(protocols)
    return {
        "apiVersion": CLUSTER_SERVING_RUNTIMES.api_version,
        "kind": CLUSTER_SERVING_RUNTIMES.kind,
        "metadata": {"name": f"kserve-{name}", "annotations": {SERVER_TYPE: name}},
        "spec": {**spec, "containers": [container], **pod},
    }


def _container(image: str, *, name: str = MODEL_SERVER, **more: Any) -> Object:
    usual = {"name": name, "image": image, "securityContext": _NOT_ROOT, "resources": _RESOURCES}
    return {field: value for field, value in {**usual, **more}.items() if value is not None}


def _formats(*formats: tuple[str, str], priority: int = 1, automatic: bool = True) -> list[Object]:
    return [{"name": n, "version": v, "autoSelect": automatic, "priority": priority} for n, v in formats]


def _variables(values: dict[str, str]) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _storage_container() -> Object:
    prefixes = ("gs://", "s3://", "hdfs://", "hf://", "modelscope://", "webhdfs://")
    patterns = (
        r"https://(.+?).blob.core.windows.net/(.+)",
        r"https://(.+?).file.core.windows.net/(.+)",
        r"https?://(.+)/(.+)",
    )
    resources = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    image = "kserve/storage-initializer:latest"
    container = {
        "name": "storage-initializer",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": resources,
    }
    return {
        "apiVersion": CLUSTER_STORAGE_CONTAINERS.api_version,
        "kind": CLUSTER_STORAGE_CONTAINERS.kind,
        "metadata": {"name": "default"},
        "spec": {
            "container": container,
            "supportedUriFormats": [*({"prefix": each} for each in prefixes), *({"regex": each} for each in patterns)],
            "workloadType": "initContainer",
            "supportsMultiModelDownload": True,
        },
    }
