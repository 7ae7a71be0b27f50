"""Presets of all that leads to model servers: route, scheduler, tokenizer, latency predictor, traces."""

from __future__ import annotations

from typing import Any, Final

from isvc.kube.objects import Object
from isvc.serving.llm.shipped.pods import (
    CERTIFICATE_MOUNT,
    CERTIFICATE_VOLUME,
    CERTIFICATES,
    GRACE_SECONDS,
    TRUSTED,
    container,
    drained,
    health,
    scratch,
    variables,
    with_tls,
)

PICKER: Final = "ghcr.io/llm-d/llm-d-router-endpoint-picker:v0.10.0"
PICKER_VERSION: Final = "0.10.0"
RENDERER: Final = (
    "docker.io/vllm/vllm-openai-cpu:v0.23.0@sha256:89e1fbe829038b1a560601990c8ec89625c622a969fcbc8f10ce48b6139795be"
)
TRAINER: Final = "ghcr.io/llm-d/llm-d-latency-predictor-training-server:0.9.0"
PREDICTOR: Final = "ghcr.io/llm-d/llm-d-latency-predictor-prediction-server:0.9.0"
POOL: Final = "{{ ChildName .ObjectMeta.Name `-inference-pool` }}"
WORKLOAD: Final = "{{ ChildName .ObjectMeta.Name `-kserve-workload-svc` }}"
OWN_PATH: Final = "/{{ .ObjectMeta.Namespace }}/{{ .ObjectMeta.Name }}"
PUBLISHED: Final = "publishers/{{ .ObjectMeta.Namespace }}/models/{{ .Spec.Model.Name }}"
ENDPOINTS: Final = ("completions", "chat/completions", "responses", "messages")


def route() -> Object:
    """Three ways in: a path of the service's own, one of the model's, and a header that names the model.

    Requests that the scheduler knows go through the pool; all others go to any of the servers.
    """
    parent = {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": "{{ .GlobalConfig.IngressGatewayName }}",
        "namespace": "{{ .GlobalConfig.IngressGatewayNamespace }}",
    }
    by_header = [_match("Exact", f"/v1/{each}{slash}") | _header() for each in ENDPOINTS for slash in ("", "/")]
    rules = [
        *(_prefix(f"v1-{_word(each)}-path", f"{OWN_PATH}/v1/{each}", f"/v1/{each}", _pool()) for each in ENDPOINTS),
        {"name": "v1-model-routing", "matches": by_header, **_backend(_pool())},
        *(
            _prefix(f"v1-{_word(each)}-publisher-path", f"/{PUBLISHED}/v1/{each}", f"/v1/{each}", _pool())
            for each in ENDPOINTS
        ),
        _prefix("v1-publisher-path-catch-all", f"/{PUBLISHED}", "/", _servers()),
        _prefix("v1-catch-all-path", OWN_PATH, "/", _servers()),
        {"name": "v1-catch-all-model-routing", "matches": [_header()], **_backend(_servers())},
    ]
    return {"router": {"route": {"http": {"spec": {"parentRefs": [parent], "rules": rules}}}}}


def _word(endpoint: str) -> str:
    return endpoint.replace("/", "-")


def _prefix(name: str, path: str, becomes: str, backend: Object) -> Object:
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": becomes}}
    filters = [{"type": "URLRewrite", "urlRewrite": rewrite}]
    return {"name": name, "matches": [_match("PathPrefix", path)], "filters": filters, **_backend(backend)}


def _match(kind: str, path: str) -> Object:
    return {"path": {"type": kind, "value": path}}


def _header() -> Object:
    name = "{{ .GlobalConfig.ModelBasedRoutingHeaderName }}"
    return {"headers": [{"type": "Exact", "name": name, "value": PUBLISHED}]}


def _backend(reference: Object) -> Object:
    return {
        "backendRefs": [{**reference, "port": 8000, "weight": 1}],
        "timeouts": {"request": "0s", "backendRequest": "0s"},  # answers may take as long as they take
    }


def _pool() -> Object:
    return {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": POOL}


def _servers() -> Object:
    return {"kind": "Service", "name": WORKLOAD}


def scheduler() -> Object:
    ports = {"grpc": 9002, "grpc-health": 9003, "metrics": 9090, "zmq": 5557}
    picker = container(
        "main",
        PICKER,
        command=[
            "/app/epp",
            *("--pool-name", POOL),
            *("--pool-namespace", "{{ .ObjectMeta.Namespace }}"),
            *("--zap-encoder", "json"),
            *("--grpc-port", "9002"),
            *("--grpc-health-port", "9003"),
            with_tls("--enable-cert-reload=true"),
            with_tls("--secure-serving=true"),
            with_tls("--model-server-metrics-scheme=https"),
            with_tls(f"--cert-path={CERTIFICATES}"),
        ],
        env=variables(SSL_CERT_DIR=TRUSTED),
        ports=[{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        lifecycle=drained(),
        livenessProbe=_grpc("liveness", initialDelaySeconds=5),
        readinessProbe=_grpc("readiness", initialDelaySeconds=30),
        resources=_resources(("1", "2Gi"), ("6", "16Gi")),
        volumeMounts=[CERTIFICATE_MOUNT],
    )
    service = {"kind": "Service", "name": "{{ ChildName .ObjectMeta.Name `-epp-service` }}", "port": {"number": 9002}}
    selector = {
        "app.kubernetes.io/name": "{{ .ObjectMeta.Name }}",
        "app.kubernetes.io/part-of": "llminferenceservice",
        "kserve.io/component": "workload",
    }
    pool = {
        "endpointPickerRef": {**service, "failureMode": "FailOpen"},
        "selector": {"matchLabels": selector},
        "targetPorts": [{"number": 8000}],
    }
    pod = {
        "containers": [picker],
        "volumes": [CERTIFICATE_VOLUME],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": GRACE_SECONDS,  # as long as the servers that it sends requests to
    }
    annotations = {"app.kubernetes.io/version": PICKER_VERSION}
    return {"router": {"scheduler": {"pool": {"spec": pool}, "annotations": annotations, "template": pod}}}


def _grpc(service: str, **timing: int) -> Object:
    probe = {"port": 9003, "service": service}
    return {
        "grpc": probe,
        "periodSeconds": 10,
        "timeoutSeconds": 1,
        "successThreshold": 1,
        "failureThreshold": 3,
    } | timing


def _resources(requests: tuple[str, str], limits: tuple[str, str]) -> Object:
    return {
        "requests": dict(zip(("cpu", "memory"), requests, strict=True)),
        "limits": dict(zip(("cpu", "memory"), limits, strict=True)),
    }


def tokenizer() -> Object:
    """vLLM without a model's weights: it turns prompts into tokens for the scheduler."""
    tls = f"--enable-ssl-refresh --ssl-certfile {CERTIFICATES}/tls.crt --ssl-keyfile {CERTIFICATES}/tls.key"
    renderer = container(
        "main",
        RENDERER,
        command=["/bin/bash", "-c", f"exec vllm launch render /mnt/models/base --port=8000 {with_tls(tls)}"],
        env=variables(HF_HOME="/tmp/hf", DO_NOT_TRACK="1"),  # noqa: S108
        ports=[{"name": "render-http", "containerPort": 8000, "protocol": "TCP"}],
        readinessProbe=health(
            "render-http", initialDelaySeconds=30, periodSeconds=10, timeoutSeconds=5, failureThreshold=60
        ),
        resources=_resources(("1", "4Gi"), ("4", "12Gi")),
        volumeMounts=[{"name": "tmp-dir", "mountPath": "/tmp"}, CERTIFICATE_MOUNT],  # noqa: S108
    )
    renderer["securityContext"]["runAsNonRoot"] = False  # the image runs as root
    pod = {
        "automountServiceAccountToken": False,
        "containers": [renderer],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "volumes": [scratch("tmp-dir"), CERTIFICATE_VOLUME],
    }
    return {"router": {"scheduler": {"tokenizer": {"template": pod}}}}


_LEARNT: Final = {
    f"{kind.upper()}_{part}": f"{kind}{suffix}.joblib"
    for part, suffix in {"MODEL": "", "SCALER": "_scaler", "GATED_MODEL": "_gated"}.items()
    for kind in ("ttft", "tpot")
}


def latency_predictor() -> Object:
    """Two servers beside the scheduler: one learns from requests how long they take, the other predicts it."""
    asked = variables(
        PREDICTION_SERVER_URL="http://localhost:8001",
        TRAINING_SERVER_URL="http://localhost:8000",
        LATENCY_MAX_SAMPLE_SIZE="10000",
        LATENCY_MAX_CONCURRENT_DISPATCHES="36",
        LATENCY_COALESCE_WINDOW_MS="1",
    )
    pod = {
        "containers": [{"name": "main", "env": asked}, _trainer(), _predictor()],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "volumes": [
            scratch("training-server-storage", sizeLimit="20Gi"),
            scratch("prediction-server-storage", sizeLimit="10Gi"),
            scratch("training-server-tmp"),
            scratch("prediction-server-tmp"),
        ],
    }
    return {"router": {"scheduler": {"template": pod}}}


def _trainer() -> Object:
    return container(
        "training-server",
        TRAINER,
        env=variables(
            LATENCY_RETRAINING_INTERVAL_SEC="10",
            LATENCY_MIN_SAMPLES_FOR_RETRAIN="100",
            **{f"LATENCY_{key}_PATH": f"/models/{file}" for key, file in _LEARNT.items()},
            LATENCY_MODEL_TYPE="xgboost",
            LATENCY_MAX_TRAINING_DATA_SIZE_PER_BUCKET="500",
            LATENCY_OBJECTIVE_TYPE="mean",
        ),
        ports=[{"name": "training-port", "containerPort": 8000}],
        startupProbe=health(8000, "/healthz", scheme=False, periodSeconds=10, failureThreshold=30),
        livenessProbe=health(8000, "/healthz", scheme=False, initialDelaySeconds=30, periodSeconds=20),
        readinessProbe=health(8000, "/readyz", scheme=False, initialDelaySeconds=45, periodSeconds=10),
        resources=_resources(("2", "4Gi"), ("4", "8Gi")),
        volumeMounts=_mounts("training-server", "/models"),
    )


def _predictor() -> Object:
    patient: dict[str, Any] = {"scheme": False, "timeoutSeconds": 5}
    return container(
        "prediction-server",
        PREDICTOR,
        env=variables(
            TRAINING_SERVER_URL="http://localhost:8000",
            LATENCY_MODEL_TYPE="xgboost",
            PREDICT_HOST="0.0.0.0",  # noqa: S104
            PREDICT_PORT="8001",
            **{f"LOCAL_{key}_PATH": f"/server_models/{file}" for key, file in _LEARNT.items()},
            UVICORN_WORKERS="28",
            OMP_NUM_THREADS="1",
            MODEL_SYNC_INTERVAL_SEC="30",
            LATENCY_OBJECTIVE_TYPE="mean",
        ),
        ports=[{"name": "predict-port", "containerPort": 8001}],
        startupProbe=health(8001, "/readyz", scheme=False, periodSeconds=10, failureThreshold=60),
        livenessProbe=health(8001, "/healthz", initialDelaySeconds=15, periodSeconds=15, failureThreshold=5, **patient),
        readinessProbe=health(8001, "/readyz", initialDelaySeconds=10, periodSeconds=10, failureThreshold=3, **patient),
        resources=_resources(("8", "4Gi"), ("28", "8Gi")),
        volumeMounts=_mounts("prediction-server", "/server_models"),
    )


def _mounts(server: str, models: str) -> list[Object]:
    return [
        {"name": f"{server}-storage", "mountPath": models},
        {"name": f"{server}-tmp", "mountPath": "/tmp"},  # noqa: S108
    ]


def tracing() -> Object:
    return {
        "tracing": {
            "exporterEndpoint": "http://otel-collector:4317",
            "exporter": "otlp",
            "sampler": "parentbased_traceidratio",
            "samplerArg": "0.05",
        }
    }
