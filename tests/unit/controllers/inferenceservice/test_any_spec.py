"""Whatever a spec says, planning and folding come to an end, and the status says something."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.answers import answers

from isvc.api import InferenceService
from isvc.api.codec import DecodeError
from isvc.api.completion import read
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan
from isvc.controllers.inferenceservice.status.fold import find_stop, fold_status
from isvc.engine.outcome import Outcome
from isvc.kube.conditions import find
from isvc.serving.config import Config
from isvc.serving.runtimes import Runtime, Runtimes
from isvc.serving.thirdparty import OPTIONAL

names = st.sampled_from(["kserve-container", "transformer-container", "worker-container", "side", ""])
small = st.integers(-2, 3)
quantity = st.sampled_from(["1", "100m", "0", "2Gi"])
words = st.sampled_from(
    ["", "a", "{{.Name}}", "{{.Nope", "{{.Labels.x}}", "gs://b/m", "ftp://x", "pvc://c/m", "oci://i"]
)
resources = st.dictionaries(
    st.sampled_from(["limits", "requests"]),
    st.dictionaries(st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "nvidia.com/mig-1g"]), quantity),
)
container = st.fixed_dictionaries(
    {"name": names},
    optional={
        "image": st.sampled_from(["", "a", "a:1", "a@sha256:0"]),
        "args": st.lists(words, max_size=2),
        "env": st.lists(
            st.fixed_dictionaries({"name": st.sampled_from(["A", "STORAGE_URI"])}, optional={"value": words})
        ),
        "ports": st.lists(
            st.fixed_dictionaries(
                {"containerPort": st.integers(1, 9)}, optional={"name": st.sampled_from(["h2c", "http"])}
            ),
            max_size=3,
        ),
        "resources": resources,
    },
)
metric = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.just("Resource"),
            "resource": st.fixed_dictionaries({"name": st.just("cpu"), "target": st.just({})}),
        }
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["Resource", "External", "PodMetric"])}),
)
extension = {
    "minReplicas": small,
    "maxReplicas": small,
    "scaleMetric": st.sampled_from(["cpu", "memory", "rps"]),
    "scaleTarget": small,
    "containerConcurrency": small,
    "timeout": small,
    "autoScaling": st.fixed_dictionaries({}, optional={"metrics": st.lists(metric, max_size=2)}),
    "logger": st.just({"mode": "all"}),
    "batcher": st.just({}),
    "deploymentStrategy": st.just({"type": "Recreate"}),
    "storageUris": st.lists(
        st.fixed_dictionaries({"uri": words}, optional={"mountPath": words}), min_size=1, max_size=2
    ),
    "containers": st.lists(container, max_size=3),
    "labels": st.dictionaries(st.sampled_from(["x", "app"]), st.sampled_from(["", "v"])),
}
model = st.fixed_dictionaries(
    {
        "modelFormat": st.fixed_dictionaries(
            {"name": st.sampled_from(["f", "none", "multi"])}, optional={"version": words}
        )
    },
    optional={
        "storageUri": words,
        "runtime": st.sampled_from(["plain", "empty", "gone", "nodes"]),
        "runtimeVersion": words,
        "protocolVersion": st.sampled_from(["v1", "v2", "grpc-v2"]),
        "storage": st.fixed_dictionaries({}, optional={"path": words, "key": words}),
        "env": st.lists(st.fixed_dictionaries({"name": words, "value": words}), max_size=2),
    },
)
predictor = st.fixed_dictionaries(
    {},
    optional={
        **extension,
        "name": st.sampled_from(["v1", "v2"]),
        "model": model,
        "workerSpec": st.fixed_dictionaries(
            {}, optional={"pipelineParallelSize": small, "tensorParallelSize": small, "containers": st.lists(container)}
        ),
    },
)
component = st.fixed_dictionaries({}, optional=extension)
explainer = st.fixed_dictionaries({}, optional={**extension, "art": st.just({"type": "SquareAttack"})})
spec = st.fixed_dictionaries(
    {"predictor": predictor},
    optional={
        "transformer": component,
        "explainer": explainer,
        "canary": st.lists(st.fixed_dictionaries({"predictor": predictor, "trafficPercent": small}), max_size=2),
    },
)
annotation_sets = st.fixed_dictionaries(
    {},
    optional={
        "serving.kserve.io/autoscalerClass": st.sampled_from(["hpa", "keda", "none", "kpa"]),
        "serving.kserve.io/stop": st.sampled_from(["true", "false"]),
        "serving.kserve.io/gpu-resource-types": st.sampled_from(["[]", "no", '["acme/gpu"]']),
    },
)


def runtime(name: str, form: str, *containers: Any, **more: Any) -> Runtime:
    formats = [{"name": form, "autoSelect": True}]
    spec = {"supportedModelFormats": formats, "containers": list(containers), **more}
    return Runtime.of({"metadata": {"name": name}, "spec": spec}, cluster=False)


RUNTIMES = Runtimes(
    (
        runtime("plain", "f", {"name": "kserve-container", "image": "i:1"}),
        runtime("empty", "none"),
        runtime(
            "nodes",
            "multi",
            {"name": "kserve-container", "image": "i:1"},
            workerSpec={"containers": [{"name": "worker-container", "image": "w"}]},
        ),
    ),
    (),
)


@given(spec, annotation_sets, st.booleans(), st.booleans())
def test_any_spec_ends_in_a_status(spec: Any, annotations: Any, gateway: bool, served: bool) -> None:
    raw = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "iris", "namespace": "ns", "uid": "u", "generation": 1, "annotations": annotations},
        "spec": spec,
        "status": {"deploymentMode": "Standard"},
    }
    ingress = '{"ingressGateway": "a/b", "kserveIngressGateway": "a/b", "enableGatewayApi": %s}'
    config = Config.parse(
        {"ingress": ingress % str(gateway).lower(), "deploy": '{"defaultDeploymentMode": "Standard"}'}
    )
    try:
        raw, service = read(InferenceService, raw)
    except DecodeError:
        return
    accounts = {"": None, "default": None}
    observed = Observed(
        raw,
        service,
        config,
        runtimes=RUNTIMES,
        served=frozenset(OPTIONAL) if served else frozenset(),
        answers=answers("ns", accounts, {"storage-config": None, "": None}),
        now="2026-01-01T00:00:00Z",
    )
    planned = plan(observed)
    status = fold_status(observed, planned, Outcome())
    assert find(status["conditions"], "Ready") is not None
    stop = find_stop(planned, Outcome())
    assert stop is None or stop.message
    again = replace(observed, raw={**raw, "status": status})
    assert fold_status(again, planned, Outcome()) == status
