"""What the children of an LLMInferenceService are called: every name is made here, once."""

from __future__ import annotations

from hashlib import sha256

from isvc.api.llm.v1alpha2 import SchedulerSpec
from isvc.kube.objects import dig
from isvc.serving.names import child


def deployment(service: str) -> str:
    """Names the model servers on one node each; their ServiceAccount has the same name."""
    return child(service, "-kserve")


def prefill_deployment(service: str) -> str:
    return child(service, "-kserve-prefill")


def worker_set(service: str) -> str:
    """Names the LeaderWorkerSet of a model that is spread over nodes."""
    return child(service, "-kserve-mn")


def prefill_worker_set(service: str) -> str:
    return child(service, "-kserve-mn-prefill")


def role(service: str) -> str:
    return child(service, "-kserve-role")


def role_binding(service: str) -> str:
    return child(service, "-kserve-rb")


def worker_role(service: str) -> str:
    return child(service, "-kserve-mn-role")


def worker_role_binding(service: str) -> str:
    return child(service, "-kserve-mn-rb")


def workload_service(service: str) -> str:
    return child(service, "-kserve-workload-svc")


def certificates(service: str) -> str:
    return child(service, "-kserve-self-signed-certs")


def hpa(service: str) -> str:
    return child(service, "-kserve-hpa")


def prefill_hpa(service: str) -> str:
    return child(service, "-kserve-prefill-hpa")


def scaled_object(service: str) -> str:
    return child(service, "-kserve-keda")


def prefill_scaled_object(service: str) -> str:
    return child(service, "-kserve-prefill-keda")


def route(service: str) -> str:
    return child(service, "-kserve-route")


def inference_pool(service: str) -> str:
    return child(service, "-inference-pool")


def scheduler(service: str) -> str:
    return child(service, "-kserve-router-scheduler")


def scheduler_account(service: str) -> str:
    return child(service, "-epp-sa")


def scheduler_role(service: str) -> str:
    return child(service, "-epp-role")


def scheduler_role_binding(service: str) -> str:
    return child(service, "-epp-rb")


def scheduler_cluster_role_bindings(namespace: str, service: str) -> tuple[str, str]:
    """Returns KServe's name, and one for who finds it taken: `c` of `a-b` would have the name of `b-c` of `a`."""
    digest = sha256(f"{namespace}/{service}".encode()).hexdigest()[:8]
    return child(namespace, f"-{service}-epp-auth-rb"), child(namespace, f"-{service}-{digest}-epp-auth-rb")


def tokenizer(service: str) -> str:
    """Names the tokenizer's Deployment and its Service."""
    return child(service, "-tokenizer")


def picker_service(scheduler: SchedulerSpec | None, service: str) -> str:
    """Returns the Service of the endpoint picker; a pool that the service describes itself may name it."""
    pool = scheduler.pool if scheduler and not scheduler.users_pool else None
    named = dig(pool.spec, "endpointPickerRef", "name") if pool else None
    return str(named or child(service, "-epp-service"))
