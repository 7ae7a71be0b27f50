"""The Service in front of the model servers."""

from __future__ import annotations

from typing import Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.metadata import child_metadata, workload_annotations
from isvc.controllers.llmisvc.workload.phases import main_phase
from isvc.engine.plan import Child
from isvc.engine.policies import SPEC_AND_OUR_METADATA
from isvc.kube.objects import Object
from isvc.kube.resource import SERVICES
from isvc.serving.llm import labels, names

PORT: Final = 8000
"""Where presets have the model server listen, or the routing sidecar in front of it."""


def workload_service(observed: Observed) -> Child:
    phase = main_phase(observed)
    protocol = "https" if observed.config.ingress.enable_llm_inference_service_tls else "http"
    given = {**labels.labels(observed.name, labels.WORKLOAD), **phase.labels}
    port: Object = {"name": protocol, "protocol": "TCP", "appProtocol": protocol, "port": PORT, "targetPort": PORT}
    annotations = workload_annotations(phase.spec)
    metadata = child_metadata(observed, names.workload_service(observed.name), given, annotations)
    spec = {"ports": [port], "selector": labels.workload_selector(observed.name), "type": "ClusterIP"}
    return Child(SERVICES, SERVICES.manifest(metadata, spec=spec), SPEC_AND_OUR_METADATA)
