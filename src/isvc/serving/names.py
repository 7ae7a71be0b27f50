"""What the children of a service are called: every name is made here, once."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

_LONGEST = 63
_HEAD = _LONGEST - 32  # what a hash leaves room for
PREDICTOR, TRANSFORMER, EXPLAINER = "predictor", "transformer", "explainer"


def predictor(service: str, variant: str = "") -> str:
    """`variant` is `spec.predictor.name`, which tells a canary from the stable predictor."""
    return f"{service}-{variant}-{PREDICTOR}" if variant else f"{service}-{PREDICTOR}"


def transformer(service: str) -> str:
    return f"{service}-{TRANSFORMER}"


def explainer(service: str) -> str:
    return f"{service}-{EXPLAINER}"


def path_route(service: str) -> str:
    """Returns the HTTPRoute of a service's path below the ingress domain."""
    return f"{service}-path"


def worker(service: str) -> str:
    """Returns the Deployment of a multi-node predictor's workers."""
    return f"{service}-{PREDICTOR}-worker"


def head_service(predictor_name: str, generation: int) -> str:
    return f"{predictor_name.removesuffix('-predictor')}-head-{generation}"


def worker_service(predictor_name: str, generation: int) -> str:
    return f"{predictor_name.removesuffix('-predictor')}-workers-{generation}"


def interceptor_alias(component: str) -> str:
    """Returns the Service by which a component is reached through KEDA's interceptor."""
    return child(component, "-interceptor")


def app(workload: str) -> str:
    """Returns the value of the `app` label that a workload's selector and its Service share."""
    return f"isvc.{workload}"


def worker_app(predictor_name: str) -> str:
    return f"{app(predictor_name)}-worker"


def model_config(service: str, shard: int) -> str:
    return f"modelconfig-{service}-{shard}"


@lru_cache(maxsize=10_000)
def child(parent: str, suffix: str) -> str:
    """Joins parent and suffix in at most 63 letters: what does not fit gives way to a hash, so names stay apart."""
    if len(parent) + len(suffix) <= _LONGEST:
        return parent + suffix
    if len(suffix) < _HEAD:
        return f"{parent[: _HEAD - len(suffix)]}{_hash(parent)}{suffix}"
    name = parent[:_HEAD] + _hash(parent + suffix)
    return re.sub("[^a-zA-Z0-9]+$", "", name + suffix[: _LONGEST - len(name)])


def _hash(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
