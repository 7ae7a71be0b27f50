"""What the children of an LLMInferenceService are called: every name is made here, once."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from isvc.api.llm.v1alpha2 import SchedulerSpec
from isvc.kube.objects import dig
from isvc.serving.names import child


def _named(suffix: str) -> Callable[[str], str]:
    """Returns what makes the name of a child of that of its service."""
    return lambda service: child(service, suffix)


deployment = _named("-kserve")  # of model servers on one node each; their ServiceAccount has the same name
prefill_deployment = _named("-kserve-prefill")
worker_set = _named("-kserve-mn")  # the LeaderWorkerSet of a model that is spread over nodes
prefill_worker_set = _named("-kserve-mn-prefill")
role = _named("-kserve-role")
role_binding = _named("-kserve-rb")
worker_role = _named("-kserve-mn-role")
worker_role_binding = _named("-kserve-mn-rb")
workload_service = _named("-kserve-workload-svc")
certificates = _named("-kserve-self-signed-certs")
hpa = _named("-kserve-hpa")
prefill_hpa = _named("-kserve-prefill-hpa")
scaled_object = _named("-kserve-keda")
prefill_scaled_object = _named("-kserve-prefill-keda")
route = _named("-kserve-route")
inference_pool = _named("-inference-pool")
scheduler = _named("-kserve-router-scheduler")
scheduler_account = _named("-epp-sa")
scheduler_role = _named("-epp-role")
scheduler_role_binding = _named("-epp-rb")
tokenizer = _named("-tokenizer")  # its Deployment and its Service


def scheduler_cluster_role_bindings(namespace: str, service: str) -> tuple[str, str]:
    """Returns KServe's name, and one for who finds it taken: `c` of `a-b` would have the name of `b-c` of `a`."""
    digest = sha256(f"{namespace}/{service}".encode()).hexdigest()[:8]
    return child(namespace, f"-{service}-epp-auth-rb"), child(namespace, f"-{service}-{digest}-epp-auth-rb")


def picker_service(scheduler: SchedulerSpec | None, service: str) -> str:
    """Returns the Service of the endpoint picker; a pool that the service describes itself may name it."""
    pool = scheduler.pool if scheduler and not scheduler.users_pool else None
    named = dig(pool.spec, "endpointPickerRef", "name") if pool else None
    return str(named or child(service, "-epp-service"))
