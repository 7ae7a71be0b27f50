"""What the children of an LLMInferenceService are called: every name is made here, once."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from isvc.api.llm.v1alpha2 import SchedulerSpec
from isvc.kube.objects import dig
from isvc.serving.names import child


def _child_with(suffix: str) -> Callable[[str], str]:
    """Returns what makes the name of a child of that of its service."""
    return lambda service: child(service, suffix)


deployment = _child_with("-kserve")  # of model servers on one node each; their ServiceAccount has the same name
prefill_deployment = _child_with("-kserve-prefill")
worker_set = _child_with("-kserve-mn")  # the LeaderWorkerSet of a model that is spread over nodes
prefill_worker_set = _child_with("-kserve-mn-prefill")
role = _child_with("-kserve-role")
role_binding = _child_with("-kserve-rb")
worker_role = _child_with("-kserve-mn-role")
worker_role_binding = _child_with("-kserve-mn-rb")
workload_service = _child_with("-kserve-workload-svc")
certificates = _child_with("-kserve-self-signed-certs")
hpa = _child_with("-kserve-hpa")
prefill_hpa = _child_with("-kserve-prefill-hpa")
scaled_object = _child_with("-kserve-keda")
prefill_scaled_object = _child_with("-kserve-prefill-keda")
route = _child_with("-kserve-route")
inference_pool = _child_with("-inference-pool")
scheduler = _child_with("-kserve-router-scheduler")
scheduler_account = _child_with("-epp-sa")
scheduler_role = _child_with("-epp-role")
scheduler_role_binding = _child_with("-epp-rb")
tokenizer = _child_with("-tokenizer")  # its Deployment and its Service


def scheduler_cluster_role_bindings(namespace: str, service: str) -> tuple[str, str]:
    """Returns KServe's name, and one for who finds it taken: `c` of `a-b` would have the name of `b-c` of `a`."""
    digest = sha256(f"{namespace}/{service}".encode()).hexdigest()[:8]
    return child(namespace, f"-{service}-epp-auth-rb"), child(namespace, f"-{service}-{digest}-epp-auth-rb")


def picker_service(scheduler: SchedulerSpec | None, service: str) -> str:
    """Returns the Service of the endpoint picker; a pool that the service describes itself may name it."""
    pool = scheduler.pool if scheduler and not scheduler.users_pool else None
    named = dig(pool.spec, "endpointPickerRef", "name") if pool else None
    return str(named or child(service, "-epp-service"))
