"""The places where we deliberately differ from the reference, looked up in the recordings of our own cases.

docs/decisions says why; tests/unit/suite/test_decisions.py checks that no difference is without a test.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.answers import answers
from tests.golden.player import read_case, read_recording
from tests.unit.controllers.inferenceservice.test_components import CONTAINER, SKLEARN, child, planned

from isvc.api.annotations import FINALIZER
from isvc.kube.objects import Object, dig, name_of
from isvc.kube.resource import DEPLOYMENTS
from isvc.serving.runtimes import Runtime
from isvc.webhooks.inferenceservice import add_finalizer

FORMAT = {"modelFormat": {"name": "sklearn"}}
STANDARD, KNATIVE, MODELS = "standard-differences", "knative-differences", "models-differences"


def after(recording: str, step: str) -> Object:
    states: dict[str, Object] = {state["step"]: state["objects"] for state in read_recording(recording)}
    return states[step]


def service(objects: Object, name: str, kind: str = "InferenceService") -> Object:
    found: Object = objects[f"{kind}.serving.kserve.io/{name}"]
    return found


def condition(obj: Object, kind: str) -> Object:
    return next((each for each in dig(obj, "status", "conditions") or [] if each["type"] == kind), {})


def template(objects: Object, name: str) -> Object:
    found: Object = objects[f"Deployment.apps/{name}"]["spec"]["template"]
    return found


class TestStandard:
    def test_what_is_no_longer_wanted_goes(self) -> None:
        both, one = after(STANDARD, "three components"), after(STANDARD, "two of them go")
        parts = {key for key in both if key.endswith(("/fir-transformer", "/fir-explainer"))}
        assert len(parts) == 6
        assert not parts & set(one)
        status = service(one, "fir")["status"]
        assert set(status["components"]) == {"predictor"}
        assert not condition(service(one, "fir"), "TransformerReady")
        keda, hpa = after(STANDARD, "KEDA without metrics"), after(STANDARD, "and back")
        scalers = {"ScaledObject.keda.sh/fir-predictor", "HorizontalPodAutoscaler.autoscaling/fir-predictor"}
        assert scalers & set(keda) == {"ScaledObject.keda.sh/fir-predictor"}
        assert scalers & set(hpa) == {"HorizontalPodAutoscaler.autoscaling/fir-predictor"}
        local = after("gateway-api", "for the cluster alone")
        assert not any(key.startswith("HTTPRoute") for key in local)
        ingress = "Ingress.networking.k8s.io/oak"
        assert ingress in after("standard-ingress", "everything is healthy")
        assert ingress not in after("standard-ingress", "no ingress any more")

    def test_a_name_that_is_taken_is_not_overwritten(self) -> None:
        objects = after(STANDARD, "a name is taken")
        assert objects["Service/pine-predictor"]["spec"]["selector"] == {"own": "yes"}
        assert (
            "Service pine-predictor exists already" in condition(service(objects, "pine"), "PredictorReady")["message"]
        )

    def test_a_rollout_of_absolute_numbers_works(self) -> None:
        deployment = after(STANDARD, "three components")["Deployment.apps/fir-predictor"]
        assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 2, "maxUnavailable": 1}

    def test_keda_without_metrics_scales_on_cpu(self) -> None:
        scaled = after(STANDARD, "KEDA without metrics")["ScaledObject.keda.sh/fir-predictor"]
        [trigger] = scaled["spec"]["triggers"]
        assert (trigger["type"], trigger["metadata"]["value"]) == ("cpu", "80")

    def test_a_custom_predictor_whose_first_container_is_another_one(self) -> None:
        containers = template(after(STANDARD, "another container first"), "mixed-predictor")["spec"]["containers"]
        assert [each["name"] for each in containers] == ["helper", "kserve-container"]

    def test_an_ingress_with_transformer_and_explainer(self) -> None:
        rules = after(STANDARD, "three components")["Ingress.networking.k8s.io/fir"]["spec"]["rules"]
        backends = {
            rule["host"]: rule["http"]["paths"][0]["backend"]["service"]["name"]
            for rule in rules
            if "explainer" in rule["host"] or "transformer" in rule["host"]
        }
        assert set(backends.values()) == {"fir-explainer", "fir-transformer"}
        assert len(backends) == 2

    def test_a_worker_spec_on_a_runtime_that_has_none(self) -> None:
        wide = service(after(STANDARD, "a runtime without workers"), "wide")
        assert condition(wide, "PredictorReady")["reason"] == "InvalidWorkerSpecNotSet"

    def test_a_canary_downloads_its_storage_uris(self) -> None:
        uris = [{"uri": "gs://stock/next", "mountPath": "/mnt/models/next"}]
        canary = {"predictor": {"name": "next", "model": FORMAT, "storageUris": uris}, "trafficPercent": 10}
        known = answers("ns", {"default": None})
        done = planned({"predictor": {"model": SKLEARN}, "canary": [canary]}, "Standard", answers=known)
        spec = child(done, DEPLOYMENTS, "iris-next-predictor").manifest["spec"]["template"]["spec"]
        assert "gs://stock/next" in str(spec["initContainers"])

    def test_multi_node_predictors_keep_their_workers(self) -> None:
        """What the first plan made is wanted again: nothing of the workers is retired."""
        worker = {"containers": [{"name": "worker-container", "image": "w:1"}], "pipelineParallelSize": 2}
        formats = [{"name": "sklearn", "autoSelect": True}]
        spec = {"supportedModelFormats": formats, "containers": [CONTAINER], "workerSpec": worker}
        server = Runtime.of({"metadata": {"name": "server"}, "spec": spec}, cluster=True)
        done = planned({"predictor": {"model": SKLEARN, "workerSpec": {}}}, "Standard", server=server)
        assert done.stop is None
        wanted = {name_of(each.manifest) for each in done.wanted()}
        assert {"iris-predictor-worker", "iris-predictor"} <= wanted
        assert any("head" in name for name in wanted), wanted

    def test_new_services_get_their_finalizer_from_the_defaulting_webhook(self) -> None:
        made = add_finalizer({"metadata": {"name": "iris"}, "spec": {}})
        assert made["metadata"]["finalizers"] == [FINALIZER]

    def test_a_running_service_can_be_stopped_whatever_its_spec_says(self) -> None:
        objects = after(STANDARD, "stopped, with a model that no runtime serves")
        assert not [key for key in objects if key.partition("/")[2].startswith("late-")]
        assert condition(service(objects, "late"), "Stopped")["status"] == "True"

    def test_a_stopped_service_has_no_url(self) -> None:
        assert "url" not in service(after("gateway-api", "stopped"), "birch")["status"]

    def test_a_service_that_waits_for_a_runtime_is_served_as_soon_as_it_appears(self) -> None:
        assert "Deployment.apps/late-predictor" not in after(STANDARD, "no runtime yet")
        served = after(STANDARD, "the runtime comes")
        assert condition(service(served, "late"), "Ready")["status"] == "True"

    def test_a_change_of_the_configuration_brings_back_the_services_it_is_about(self) -> None:
        objects = after(STANDARD, "another domain")
        assert service(objects, "fir")["status"]["url"].endswith(".elsewhere.test")
        hosts = [rule["host"] for rule in objects["Ingress.networking.k8s.io/fir"]["spec"]["rules"]]
        assert all(host.endswith(".elsewhere.test") for host in hosts)

    def test_rollout_restart_restarts(self) -> None:
        annotations = template(after(STANDARD, "a restart by hand"), "fir-predictor")["metadata"]["annotations"]
        assert "kubectl.kubernetes.io/restartedAt" in annotations

    def test_observed_generation_is_the_services_own(self) -> None:
        """It changed its spec twice after it was created: the transformer went, then nothing but annotations."""
        assert service(after(STANDARD, "and back"), "fir")["status"]["observedGeneration"] == 2

    def test_canaries_of_a_service_that_sleeps_stay_awake(self) -> None:
        objects = after("asleep-gateway", "a canary, which stays awake")
        assert "InterceptorRoute.http.keda.sh/owl-next-predictor" not in objects
        assert objects["ScaledObject.keda.sh/owl-next-predictor"]["spec"]["minReplicaCount"] == 1
        assert objects["ScaledObject.keda.sh/owl-predictor"]["spec"]["minReplicaCount"] == 0
        [rule] = objects["HTTPRoute.gateway.networking.k8s.io/owl"]["spec"]["rules"]
        shares = {backend["name"]: backend["weight"] for backend in rule["backendRefs"]}
        assert shares == {"keda-add-ons-http-interceptor-proxy": 90, "owl-next-predictor": 10}


class TestKnative:
    def test_a_graph_in_standard_mode_is_ready_when_its_deployment_is_available(self) -> None:
        graph = service(after("graph-standard", "the service is there"), "forester", "InferenceGraph")
        assert condition(graph, "Ready")["status"] == "True"

    def test_graphs_watch_the_services_they_depend_on(self) -> None:
        assert "Deployment.apps/forester" not in after("graph-standard", "a graph that waits for a service")
        assert "Deployment.apps/forester" in after("graph-standard", "the service is there")

    def test_a_graph_that_waits_for_a_service_says_so(self) -> None:
        graph = service(after("graph-standard", "a graph that waits for a service"), "forester", "InferenceGraph")
        assert condition(graph, "Ready")["message"] == "InferenceService leaf does not exist"

    def test_deleting_a_model_whose_service_is_gone_succeeds(self) -> None:
        objects = after(MODELS, "its service is gone, and it with it")
        assert "TrainedModel.serving.kserve.io/alder" not in objects
        assert "InferenceService.serving.kserve.io/field" not in objects

    def test_a_public_host_is_the_components_host_without_the_component(self) -> None:
        ash = service(after(KNATIVE, "a transformer, and a name like the component's"), "ash-predictor-default")
        assert ash["status"]["url"] == "http://ash-predictor-default.NAMESPACE.example.com"

    def test_turning_virtual_hosts_off_removes_what_they_needed(self) -> None:
        objects = after(KNATIVE, "no virtual hosts any more")
        left = {"VirtualService.networking.istio.io/ash-predictor-default", "Service/ash-predictor-default"}
        assert not left & set(objects)

    def test_a_removed_transformer_goes(self) -> None:
        objects = after(KNATIVE, "the transformer goes")
        assert "Service.serving.knative.dev/ash-predictor-default-transformer" not in objects
        assert not condition(service(objects, "ash-predictor-default"), "TransformerReady")

    def test_a_graph_that_changes_its_mode_leaves_nothing_behind(self) -> None:
        assert "Service.serving.knative.dev/hedge" not in after(KNATIVE, "the graph becomes a Deployment")

    def test_a_stopped_graph_has_no_autoscaler(self) -> None:
        assert not [key for key in after("graph-standard", "the graph stops") if key.endswith("/forester")][1:]

    def test_the_last_applied_configuration_stays_off_revisions(self) -> None:
        graph = after(KNATIVE, "a graph with annotations")["Service.serving.knative.dev/hedge"]
        assert "last-applied" not in str(graph["spec"]["template"]["metadata"])

    def test_a_missing_config_autoscaler_means_knatives_default(self) -> None:
        elm = service(after("knative", "everything is healthy"), "elm")
        assert condition(elm, "Ready")["status"] == "True"

    def test_annotations_that_a_graph_lifts_follow_the_graph(self) -> None:
        def lifted(step: str) -> Any:
            knative = after(KNATIVE, step)["Service.serving.knative.dev/hedge"]
            return knative["metadata"]["annotations"]["serving.knative.openshift.io/enablePassthrough"]

        assert [lifted("a graph with annotations"), lifted("the annotation changes")] == ["false", "true"]

    def test_a_virtual_service_of_somebody_else_is_not_taken_over(self) -> None:
        objects = after(KNATIVE, "somebody's VirtualService has the name")
        theirs = objects["VirtualService.networking.istio.io/moss"]
        reported = condition(service(objects, "moss"), "IngressReady")
        assert (reported["status"], reported["reason"]) == ("False", "ReconcileFailed")
        assert "VirtualService moss exists already" in reported["message"]
        assert theirs["spec"] == {"hosts": ["theirs.test"]}
        assert "ownerReferences" not in theirs["metadata"]

    def test_a_model_that_moves_carries_its_services_label(self) -> None:
        before, moved = after(MODELS, "the second comes"), after(MODELS, "the first moves")
        assert service(moved, "alder", "TrainedModel")["metadata"]["labels"]["inferenceservice"] == "field"
        beech = [condition(service(each, "beech", "TrainedModel"), "Ready")["status"] for each in (before, moved)]
        assert beech == ["False", "True"]


@pytest.mark.parametrize("name", [STANDARD, KNATIVE, MODELS])
def test_every_step_is_recorded(name: str) -> None:
    assert [state["step"] for state in read_recording(name)] == [step["step"] for step in read_case(name)["steps"]]
