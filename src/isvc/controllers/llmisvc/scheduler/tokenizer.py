"""The tokenizer: a server that turns prompts into tokens for plugins of the endpoint picker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.metadata import child_metadata
from isvc.controllers.llmisvc.workload.steps import context
from isvc.controllers.llmisvc.workload.storage import Target, attach_model
from isvc.engine.plan import Child
from isvc.engine.policies import MARKED_WORKLOAD
from isvc.kube.objects import Object, deep_copy, dig
from isvc.kube.resource import DEPLOYMENTS, SERVICES
from isvc.serving.hosts import service_host
from isvc.serving.llm import labels, names

PORT: Final = 8000
_PORT_NAME: Final = "render-http"
_MODEL_PATH: Final = "/mnt/models/base"


def url(observed: Observed) -> str:
    scheme = "https" if observed.settings.enable_tls else "http"
    return f"{scheme}://{service_host(names.tokenizer(observed.name), observed.namespace)}:{PORT}"


def tokenizer(observed: Observed, account: Object) -> Iterator[Child]:
    """`account` is the endpoint picker's: its credentials serve to download the model."""
    name = names.tokenizer(observed.name)
    live = observed.live.get((DEPLOYMENTS, name)) or {}
    given = labels.labels(observed.name, labels.TOKENIZER)
    given_tokenizer = observed.scheduler.tokenizer if observed.scheduler else None
    pod = deep_copy((given_tokenizer and given_tokenizer.template) or {})
    building = "failed to build expected tokenizer deployment"
    with context(f"{building}: failed to attach model artifacts to tokenizer deployment"):
        attach_model(observed, pod, Target(path=_MODEL_PATH), account, dig(live, "spec", "template", "spec"))
    template = {"metadata": {"labels": given}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": given}, "template": template}
    deployment = DEPLOYMENTS.manifest(child_metadata(observed, name, given), spec=spec)
    yield Child(DEPLOYMENTS, deployment, policy=MARKED_WORKLOAD)
    port = {"name": _PORT_NAME, "port": PORT, "targetPort": _PORT_NAME, "protocol": "TCP"}
    service = SERVICES.manifest(child_metadata(observed, name, given), spec={"selector": given, "ports": [port]})
    yield Child(SERVICES, service)
