"""What components become: details of their children that users and other programs rely on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.answers import answers

from isvc.api import InferenceService
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan
from isvc.controllers.inferenceservice.planned import Planned
from isvc.controllers.inferenceservice.status.fold import fold_status
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Child, Retire
from isvc.kube.conditions import find
from isvc.kube.objects import name_of
from isvc.kube.resource import DEPLOYMENTS, INGRESSES, SERVICES
from isvc.serving.config import Config
from isvc.serving.runtimes import Runtime, Runtimes
from isvc.serving.thirdparty import KNATIVE_SERVICES, OPTIONAL

SKLEARN = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://a/b"}
CONTAINER = {"name": "kserve-container", "image": "i:1"}


def runtime(**container: Any) -> Runtime:
    formats = [{"name": "sklearn", "autoSelect": True}]
    spec = {"supportedModelFormats": formats, "containers": [{**CONTAINER, **container}]}
    return Runtime.of({"metadata": {"name": "server"}, "spec": spec}, cluster=True)


def planned(
    spec: dict[str, Any],
    mode: str,
    status: dict[str, Any] | None = None,
    server: Runtime | None = None,
    **seen: Any,
) -> Planned:
    raw = {
        "metadata": {"name": "iris", "namespace": "ns", "uid": "u"},
        "spec": spec,
        "status": {"deploymentMode": mode, **(status or {})},
    }
    config = Config.parse({"ingress": '{"ingressGateway": "a/b", "localGateway": "a/c", "localGatewayService": "d.e"}'})
    observed = Observed(
        raw,
        InferenceService.decode(raw),
        config,
        runtimes=Runtimes((), (server or runtime(),)),
        served=frozenset(OPTIONAL),
        now="2026-01-01T00:00:00Z",
        **{"answers": answers("ns"), **seen},
    )
    return plan(observed)


def child(done: Planned, kind: Any, name: str) -> Child:
    return next(c for c in done.wanted() if c.resource == kind and name_of(c.manifest) == name)


def test_a_component_can_ask_for_tags_by_itself() -> None:
    annotations = {"serving.kserve.io/enable-tag-routing": "true"}
    done = planned({"predictor": {"model": SKLEARN, "annotations": annotations}}, "Knative")
    assert child(done, KNATIVE_SERVICES, "iris-predictor").manifest["spec"]["traffic"][0]["tag"] == "latest"


def test_revisions_spell_amounts_as_pods_do() -> None:
    server = runtime(resources={"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": 1}})
    done = planned({"predictor": {"model": SKLEARN}}, "Knative", server=server)
    pod = child(done, KNATIVE_SERVICES, "iris-predictor").manifest["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "1"}}


def test_the_alias_of_a_service_keeps_what_others_wrote_on_it() -> None:
    alias = child(planned({"predictor": {"model": SKLEARN}}, "Knative"), SERVICES, "iris")
    assert set(alias.policy.retain) == {"metadata.labels", "metadata.annotations"}


@pytest.mark.parametrize(("url", "protocol"), [("grpc://mesh:8033", "grpc-v2"), ("https://mesh:8033", "v2")])
def test_transformers_and_explainers_find_the_predictor_in_the_mesh(url: str, protocol: str) -> None:
    spec = {
        "predictor": {"model": SKLEARN},
        "transformer": {"containers": [CONTAINER]},
        "explainer": {"containers": [CONTAINER]},
    }
    done = planned(spec, "ModelMesh", {"components": {"predictor": {"url": url}}})
    transformer = child(done, KNATIVE_SERVICES, "iris-transformer").manifest["spec"]["template"]
    assert transformer["spec"]["containers"][0]["args"][:2] == ["--protocol", protocol]
    explainer = child(done, KNATIVE_SERVICES, "iris-explainer").manifest["spec"]["template"]
    assert explainer["metadata"]["annotations"]["internal.serving.kserve.io/predictor-host"] == "mesh:8033"
    assert explainer["metadata"]["annotations"]["internal.serving.kserve.io/predictor-protocol"] == protocol


def test_a_mesh_that_speaks_something_else_is_refused() -> None:
    spec = {"predictor": {"model": SKLEARN}, "transformer": {"containers": [CONTAINER]}}
    done = planned(spec, "ModelMesh", {"components": {"predictor": {"url": "ftp://mesh"}}})
    assert done.stop is not None
    assert done.stop.message == "Predictor URL Scheme not supported: ftp"
    assert not done.wanted()


def test_a_canary_may_name_its_model_by_the_framework() -> None:
    canary = {"predictor": {"name": "next", "sklearn": {"storageUri": "gs://a/c"}}, "trafficPercent": 10}
    done = planned({"predictor": {"model": SKLEARN}, "canary": [canary]}, "Standard")
    deployment = child(done, DEPLOYMENTS, "iris-next-predictor").manifest
    annotations = deployment["spec"]["template"]["metadata"]["annotations"]
    assert annotations["internal.serving.kserve.io/storage-initializer-sourceuri"] == "gs://a/c"


def test_a_canary_with_a_model_needs_no_puller_beside_a_multi_model_server() -> None:
    canary = {"predictor": {"name": "next", "model": SKLEARN}, "trafficPercent": 10}
    done = planned({"predictor": {"model": {"modelFormat": {"name": "sklearn"}}}, "canary": [canary]}, "Standard")
    puller = "internal.serving.kserve.io/agent"
    of_canary = child(done, DEPLOYMENTS, "iris-next-predictor").manifest["spec"]["template"]["metadata"]
    assert puller not in of_canary["annotations"]
    assert puller in child(done, DEPLOYMENTS, "iris-predictor").manifest["spec"]["template"]["metadata"]["annotations"]


def test_a_worker_by_another_name_is_refused() -> None:
    formats = [{"name": "sklearn", "autoSelect": True}]
    worker = {"containers": [{"name": "worker-container", "image": "w:1"}]}
    spec = {"supportedModelFormats": formats, "containers": [CONTAINER], "workerSpec": worker}
    server = Runtime.of({"metadata": {"name": "server"}, "spec": spec}, cluster=True)
    workers = {"containers": [{"name": "other", "image": "o:1"}]}
    done = planned({"predictor": {"model": SKLEARN, "workerSpec": workers}}, "Standard", server=server)
    assert done.stop is not None
    assert done.stop.reason == "InvalidGPUAllocation"
    assert "target container(worker-container) does not exist" in done.stop.message


def test_a_mode_that_does_not_exist_is_reported_where_the_default_is_standard() -> None:
    annotations = {"serving.kserve.io/deploymentMode": "serverless"}
    done = planned({"predictor": {"model": SKLEARN, "annotations": annotations}}, "Standard")
    assert done.stop is not None
    assert done.stop.reason == "ReconcileFailed"
    assert done.stop.message.endswith("unsupported deployment mode for workload: serverless")


def test_models_that_need_a_missing_secret_are_refused_in_the_words_of_the_api_server() -> None:
    account = {"metadata": {"name": "default"}, "secrets": [{"name": "absent"}]}
    known = answers("ns", {"default": account}, {"absent": None})
    uris = [{"uri": "s3://b/m", "mountPath": "/mnt/models/m"}]
    model = {"modelFormat": {"name": "sklearn"}}
    done = planned({"predictor": {"model": model, "storageUris": uris}}, "Standard", answers=known)
    assert done.stop is not None
    assert done.stop.message == 'fails to create NewRawKubeReconciler for predictor: secrets "absent" not found'


@pytest.mark.parametrize(("mode", "kind"), [("Standard", DEPLOYMENTS), ("Knative", KNATIVE_SERVICES)])
def test_one_component_can_be_stopped_by_its_own_annotation(mode: str, kind: Any) -> None:
    spec = {
        "predictor": {"model": SKLEARN},
        "transformer": {"containers": [CONTAINER], "annotations": {"serving.kserve.io/stop": "True"}},
    }
    names = [name_of(c.manifest) for c in planned(spec, mode).wanted() if c.resource == kind]
    assert names == ["iris-predictor"]


def test_what_runs_is_stopped_even_if_it_cannot_be_planned_any_more() -> None:
    ready = [{"type": "PredictorReady", "status": "True"}, {"type": "Ready", "status": "True"}]
    raw = {
        "metadata": {"name": "iris", "namespace": "ns", "uid": "u", "annotations": {"serving.kserve.io/stop": "true"}},
        "spec": {"predictor": {"model": {**SKLEARN, "runtime": "gone"}}},
        "status": {"deploymentMode": "Standard", "url": "http://iris", "conditions": ready},
    }
    observed = Observed(
        raw,
        InferenceService.decode(raw),
        Config.parse({}),
        runtimes=Runtimes((), ()),
        live={(DEPLOYMENTS, "iris-predictor"): {"metadata": {"name": "iris-predictor"}}},
        now="2026-01-01T00:00:00Z",
    )
    done = plan(observed)
    retired = {kind for part in done.parts if isinstance(part.answer, Retire) for kind in part.kinds}
    assert {DEPLOYMENTS, SERVICES, INGRESSES} <= retired
    status = fold_status(observed, done, Outcome())
    assert "url" not in status
    stopped, predictor = (find(status["conditions"], kind) or {} for kind in ("Stopped", "PredictorReady"))
    assert (stopped["status"], predictor["reason"]) == ("True", "Stopped")
